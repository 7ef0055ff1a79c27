package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/semaphore"
	"github.com/lockbench/lockbench/workloads"
)

// faulty is the environment variable that turns this test program into a driver. Its value is the name of the driver's
// fault.
const faulty = "LOCKBENCH_TEST_DRIVER"

// lasting is a driver command that never responds. Its unusual number of seconds lets tests find the process.
const lasting = "exec sleep 1000.875"

func TestMain(m *testing.M) {
	switch fault := os.Getenv(faulty); {
	case fault == "waits for ever":
		_, err := Greet(context.Background(), []string{"sh", "-c", lasting})
		panic(err)
	case fault != "":
		serveWith(fault)
		return
	}
	os.Exit(m.Run())
}

// serveWith makes this program a driver that has the given fault in its output or in its lock. The lock is noop for
// "double grants", semaphore for "on Redis", and otherwise local.
func serveWith(fault string) {
	strategy := baselines.Local()
	if fault == "double grants" {
		strategy = baselines.Noop()
		strategy.Info.Caveat, strategy.Info.Claims.Exclusion = "", true
	}
	if fault == "on Redis" {
		strategy = semaphore.Strategy()
	}
	v, err := strategy.Variant(nil)
	if err != nil {
		panic(err)
	}
	out, say := io.Pipe()
	go plantFaults(out, fault)
	err = Serve(os.Stdin, say, v, func(c goredis.Config) (strategies.Locker, error) {
		locker, err := goredis.Open(v, c)
		return odd{locker, fault}, err
	})
	if err != nil {
		panic(err)
	}
}

// plantFaults copies a driver's responses from `from` to standard output and plants the fault in them. Most faults are
// planted in the third response that contains cycles.
func plantFaults(from io.Reader, fault string) {
	lines := json.NewDecoder(from)
	reports := 0
	for {
		var a answer
		if err := lines.Decode(&a); err != nil {
			return
		}
		if len(a.Cycles) > 0 {
			reports++
		}
		last := func() *cycle { return &a.Cycles[len(a.Cycles)-1] }
		switch now := reports == 3 && len(a.Cycles) > 0; {
		case fault == "clock" && a.Now != 0:
			a.Now = time.Now().UnixNano()
		case fault == "clock jumps" && a.Now != 0 && reports > 0:
			a.Now += int64(time.Hour)
		case fault == "version" && a.Protocol != 0:
			a.Protocol = 7
		case fault == "claims" && a.Protocol != 0:
			a.Claims = []string{"luck\x1b[2J"}
		case fault == "does not open" && a.Protocol == 0 && a.Now == 0 && reports == 0:
			a.Error = "no way \x1b[2J"
		case !now:
		case fault == "garbage":
			fmt.Println("Traceback \x1b[2J(most recent call last)")
		case fault == "long line":
			fmt.Println(strings.Repeat("x", longestLine+1))
		case fault == "silence":
			select {}
		case fault == "ends":
			fmt.Fprintln(os.Stderr, "starting\nOutOfMemoryError \x1b[2J")
			os.Exit(3)
		case fault == "killed":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case fault == "stranger":
			last().Client = 1000
		case fault == "key":
			last().Key = 7
		case fault == "order":
			last().Granted = new(last().Asked - 1)
		case fault == "past":
			last().Asked = 1
		case fault == "future":
			last().Done += int64(time.Hour)
		case fault == "neither":
			last().Granted, last().Released = nil, nil
		case fault == "other clock":
			last().Until = new(time.Now().UnixNano())
		case fault == "half a lease":
			last().Granted = nil
		case fault == "other answer":
			a.ID = 1000
		}
		text, _ := json.Marshal(a)
		if _, err := fmt.Printf("%s\n", text); err != nil {
			return
		}
	}
}

// odd is a lock whose behaviour depends on kind. With "ignores its timeout", Acquire returns late after a timeout. With
// "tells", leases report their loss and the end of their validity. With "stubborn", Release ignores its context.
type odd struct {
	strategies.Locker
	kind string
}

func (o odd) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := o.Locker.Acquire(ctx, key)
	switch {
	case err != nil && o.kind == "ignores its timeout":
		time.Sleep(3 * cancelPatience)
		fallthrough
	case err != nil:
	case o.kind == "tells":
		lost := make(chan struct{})
		time.AfterFunc(50*time.Millisecond, func() { close(lost) })
		return reportingLease{held, lost}, nil
	case o.kind == "stubborn":
		return stubborn{held}, nil
	}
	return held, err
}

type reportingLease struct {
	strategies.Lease
	lost chan struct{}
}

func (t reportingLease) Lost() <-chan struct{} { return t.lost }
func (t reportingLease) ValidUntil() time.Time { return time.Now().Add(time.Hour) }

type stubborn struct{ strategies.Lease }

func (l stubborn) Release(ctx context.Context) error {
	time.Sleep(2 * cancelPatience)
	return l.Lease.Release(context.WithoutCancel(ctx))
}

// opened starts a driver with the fault named kind and returns its Locker, for calls outside a run.
func opened(t *testing.T, kind string) strategies.Locker {
	t.Helper()
	v, err := withFault(t, kind)
	if err != nil {
		t.Fatal(err)
	}
	locker, err := v.Open(strategies.Config{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	if err := locker.(strategies.Preparer).Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return locker
}

// If the context of a Release ends, the driver continues to run. If the library cannot cancel that release, the next
// Release waits for it instead of sending a second one. By then the lock is free, so a second release would return an
// error.
func TestUncancellableReleaseIsAwaited(t *testing.T) {
	t.Parallel()
	locker := opened(t, "stubborn")
	held, err := locker.Acquire(t.Context(), "")
	if err != nil {
		t.Fatalf("the empty key: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := held.Release(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a release whose context has ended returned %v", err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("the second release returned %v", err)
	}
	if err := held.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the third release returned %v", err)
	}
}

// The driver's lock ignores its timeout of 10 ms. Acquire must return only when the lock returns, so that the report
// shows the delay.
func TestAcquireLastsAsLongAsTheLibrary(t *testing.T) {
	t.Parallel()
	locker := opened(t, "ignores its timeout")
	if _, err := locker.Acquire(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := locker.Acquire(limited, "")
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took < 3*cancelPatience {
		t.Errorf("it returned %v after %v", err, took)
	}
}

func TestLeasesReportEndAndLoss(t *testing.T) {
	t.Parallel()
	held, err := opened(t, "tells").Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if timed, ok := strategies.As[strategies.Timed](held); !ok || time.Until(timed.ValidUntil()) < 50*time.Minute {
		t.Errorf("it does not say that it is valid for an hour: %T", held)
	}
	watched, ok := strategies.As[strategies.Watched](held)
	if !ok {
		t.Fatalf("it does not report its loss: %T", held)
	}
	select {
	case <-watched.Lost():
	case <-time.After(20 * time.Second):
		t.Error("its loss is not reported")
	}
}

func TestCheckedDriverEndsWithContext(t *testing.T) {
	t.Parallel()
	v, err := withFault(t, "of a check")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	locker, err := OpenThrough(ctx, v, goredis.Config{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := locker.(strategies.Preparer).Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	held, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	end()
	<-locker.(*through).ended
	if err := held.Release(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("a release returned %v", err)
	}
	if err := locker.Close(); err != nil {
		t.Error(err)
	}
	if left := started(t, "of a check"); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

// hasty limits how long lockbench waits for a driver. The limits are shorter than usual, so that tests of silent
// drivers end soon.
var hasty = patience{start: 20 * time.Second, run: time.Second, stop: 2 * time.Second}

// started returns the process IDs of the drivers whose environment contains the variable faulty with the value mark.
func started(t *testing.T, mark string) (pids []string) {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range all {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), faulty+"="+mark+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// withFault returns a strategy whose driver is this test program with the given fault, or the error with which
// lockbench refuses that driver.
func withFault(t *testing.T, fault string) (strategies.Variant, error) {
	t.Helper()
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{env, faulty + "=" + fault, os.Args[0]}
	d, hello, err := launched(t.Context(), words, hasty)
	if err != nil {
		return strategies.Variant{}, err
	}
	return variant("exec:"+fault, words, hello, hasty), d.Close()
}

func small() workloads.Spec {
	w := workloads.Default()
	w.Clients, w.Instances, w.Hold = 4, 1, workloads.Fixed(time.Millisecond)
	w.Warmup, w.Duration = 0, workloads.Duration(500*time.Millisecond)
	return w
}

func TestCorrectDriverIsMeasured(t *testing.T) {
	t.Parallel()
	v, err := withFault(t, "good")
	if err != nil {
		t.Fatal(err)
	}
	w := small()
	w.Keys, w.Instances = 3, 1
	if err := w.Think.UnmarshalText([]byte("uniform:1ms,2ms")); err != nil {
		t.Fatal(err)
	}
	run, err := engine.Job{Strategy: v, Workload: w, Session: store.NewRunID()}.Run(t.Context())
	if err != nil || !run.Valid() {
		t.Fatalf("%v, %+v", err, run)
	}
	think := run.TimeAccounting.Think / float64(run.Speed.Acquisitions)
	hold := run.TimeAccounting.Hold / float64(run.Speed.Acquisitions)
	if run.Speed.Acquisitions < 20 || think < 0.0014 || hold < 0.00095 || run.Safety.Overlaps > 0 ||
		run.Generator.DriverCPUSeconds == nil || run.Effort.Attempts != nil {
		t.Errorf("%d acquisitions, think %v s, hold %v s, %+v", run.Speed.Acquisitions, think, hold, run)
	}
}

func TestWaitsThatEndWithoutALease(t *testing.T) {
	t.Parallel()
	v, err := withFault(t, "waits")
	if err != nil {
		t.Fatal(err)
	}
	w := small()
	w.Hold = workloads.Fixed(200 * time.Millisecond)
	run, err := engine.Job{Strategy: v, Workload: w, Session: store.NewRunID()}.Run(t.Context())
	if err != nil || !run.Valid() || run.Waiting.Open != 3 || run.Speed.Acquisitions > 3 {
		t.Errorf("without a limit: %v, %+v", err, run)
	}
	w.Timeout = new(workloads.Duration(20 * time.Millisecond))
	run, err = engine.Job{Strategy: v, Workload: w, Session: store.NewRunID()}.Run(t.Context())
	if err != nil || !run.Valid() || run.Waiting.TimedOut == 0 || len(run.Errors) > 0 {
		t.Errorf("with a limit: %v, %+v", err, run)
	}
}

func TestAuditFindsDoubleGrants(t *testing.T) {
	t.Parallel()
	v, err := withFault(t, "double grants")
	if err != nil {
		t.Fatal(err)
	}
	w := small()
	w.Instances = 2
	run, err := engine.Job{Strategy: v, Workload: w, Session: store.NewRunID()}.Run(t.Context())
	if err != nil || run.Safety.Overlaps == 0 || run.Safety.MaxHolders < 2 || len(run.Safety.Broken) != 1 {
		t.Errorf("%v, %+v", err, run.Safety)
	}
}

// Each driver has one fault. Its run must end with an error, keep the cycles that the driver reported before the fault,
// and leave no process of the driver.
func TestFaultyDriversEndTheirRuns(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]string{
		"garbage":      `a line that is not a message of the protocol: Traceback \x1b[2J(most recent call last)`,
		"long line":    "the driver wrote a line longer than 1048576 bytes",
		"silence":      "the driver has sent no report on its clients for 1s",
		"ends":         `the driver ended (exit status 3): OutOfMemoryError \x1b[2J`,
		"killed":       "the driver ended (signal: killed)",
		"stranger":     "the driver's report on client 1000 is impossible: the driver does not run this client",
		"key":          "the key is 7, but the client's next step has key 0",
		"order":        "asked, granted, released and done are not in this order",
		"past":         "before the end of the client's previous cycle, or before the start",
		"future":       "in the future",
		"neither":      "the cycle has neither a lease nor an error",
		"other clock":  "the end of the lease's validity is not a CLOCK_MONOTONIC timestamp",
		"half a lease": "a cycle with a lease needs both granted and released",
		"other answer": "the driver sent a response with the id 1000, but no open request has this id",
		"clock jumps":  "it differs by at least 59m59.", // an hour minus the time of the request
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			v, err := withFault(t, fault)
			if err != nil {
				t.Fatal(err)
			}
			run, err := engine.Job{Strategy: v, Workload: small(), Session: store.NewRunID()}.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("it ended with %v, want %q", err, want)
			}
			if run == nil || run.Valid() || !strings.Contains(run.Failure, want) {
				t.Fatalf("the run is %+v", run)
			}
			if run.Speed.Acquisitions == 0 {
				t.Error("its earlier reports are lost")
			}
			if left := started(t, fault); len(left) > 0 {
				t.Errorf("the processes %q are left", left)
			}
		})
	}
}

func TestFaultyDriversAreRefused(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]string{
		"clock":   "the driver's clock is not CLOCK_MONOTONIC: it differs by at least ",
		"version": "the driver speaks version 7 of the protocol, but lockbench speaks version 1",
		"claims":  `the driver claims luck\x1b[2J, which is not a guarantee that lockbench knows`,
	} {
		_, err := withFault(t, fault)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fault, err, want)
		}
		if left := started(t, fault); len(left) > 0 {
			t.Errorf("%s: the processes %q are left", fault, left)
		}
	}
	v, err := withFault(t, "does not open")
	if err != nil {
		t.Fatal(err)
	}
	run, err := engine.Job{Strategy: v, Workload: small(), Session: store.NewRunID()}.Run(t.Context())
	if run != nil || !errors.Is(err, store.ErrConfig) || !strings.Contains(err.Error(), `open: no way \x1b[2J`) {
		t.Errorf("a driver that does not open: %v, %v", run, err)
	}
}

// The example driver of docs/DRIVERS.md must run on Redis without errors, overlaps or leftovers. In a second run some
// holds exceed the TTL: leases must expire, but no claim of the lock may be reported as broken.
func TestExampleDriver(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python")
	}
	const file = "../../examples/driver/driver.py"
	w := small()
	w.Instances, w.Duration = 2, workloads.Duration(time.Second)
	run := onRedis(t, "exec:mine", []string{python, file}, w)
	if run.Failure != "" || len(run.Errors) > 0 || run.Speed.Acquisitions < 10 || run.Safety.Overlaps > 0 ||
		*run.Safety.LeftoverCount > 0 {
		t.Errorf("%q, %v, %d acquisitions, %+v", run.Failure, run.Errors, run.Speed.Acquisitions, run.Safety)
	}
	if cost := run.Server.Window; cost == nil || cost.Commands["set"] < 10 || cost.RoundTrips != nil {
		t.Errorf("it cost %+v", cost)
	}
	// Some holds exceed the TTL. A lease may expire just as another client's Acquire returns, so either a lost lease or an
	// overlap must be counted.
	w.TTL = workloads.Duration(100 * time.Millisecond)
	if err := w.Hold.UnmarshalText([]byte("uniform:50ms,150ms")); err != nil {
		t.Fatal(err)
	}
	run = onRedis(t, "exec:mine", []string{python, file}, w)
	if run.Failure != "" || run.Safety.LostLeases+run.Safety.ExpiredOverlaps == 0 || len(run.Safety.Broken) > 0 {
		t.Errorf("with holds beyond the TTL: %q, %v, %+v", run.Failure, run.Errors, run.Safety)
	}
}

// onRedis measures a driver on a new Redis server. words are the driver's command line.
func onRedis(t *testing.T, name string, words []string, w workloads.Spec) *results.Run {
	t.Helper()
	hello, err := Greet(t.Context(), words)
	if err != nil {
		t.Fatal(err)
	}
	return measured(t, variant(name, words, hello, usual), w)
}

func measured(t *testing.T, v strategies.Variant, w workloads.Spec) *results.Run {
	t.Helper()
	ctx, id := t.Context(), store.NewRunID()
	server, err := redis.Store{}.Open(ctx, id, store.Options{Address: redistest.Start(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close(context.WithoutCancel(ctx)) }()
	run, err := engine.Job{Strategy: v, Workload: w, Target: server, Session: id}.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestDriverLists(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"pubsub,spin:base=1ms":                     {"pubsub,spin:base=1ms"},
		"exec:redis-py":                            {"exec:3", "redis-py"},
		"pubsub,exec:redis-py,exec:./a -x=1,2 b, ": {"pubsub,exec:3,exec:4", "redis-py", "./a -x=1,2 b,"},
		"exec:go spin:backoff=none,base=1ms":       {"exec:3", "go spin:backoff=none,base=1ms"},
		"a,fair:x=1,y=2+exec:redisson fair":        {"a,fair:x=1,y=2+exec:3", "redisson fair"},
		"spin,\u00a0exec:a,\vexec:0":               {"spin,\u00a0exec:3,\vexec:4", "a", "0"},
		"exec:a+b+ exec:c,d, exec: e":              {"exec:3+ exec:4, exec:5", "a+b", "c,d", "e"},
	} {
		text, commands := numbered(list, 3)
		if got := append([]string{text}, commands...); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
