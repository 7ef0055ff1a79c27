package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	lock "github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/workloads"
)

func TestMain(m *testing.M) {
	strategies.RegisterStrategy(lock.Strategy())
	goleak.VerifyTestMain(m)
}

// opened opens the store, and closes it when the test ends.
func opened(t *testing.T, o store.Options) *Server {
	t.Helper()
	server, err := Store{}.Open(t.Context(), store.NewRunID(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := server.Close(ended); err != nil {
			t.Error(err)
		}
	})
	return server.(*Server)
}

// run drives the lock through a second of contention, once more where the machine was too busy
// to look at it.
func run(t *testing.T, server *Server, options map[string]string, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	for range 3 {
		got := once(t, server, options, change)
		if !strings.Contains(fmt.Sprint(got.Invalid), "too busy") {
			return got
		}
	}
	t.Fatal("the machine is too busy for any run")
	return nil
}

func once(t *testing.T, server *Server, options map[string]string, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	v, err := strategies.NewVariant("etcd", options)
	if err != nil {
		t.Fatal(err)
	}
	w := workloads.Default()
	w.Clients, w.Instances = 3, 3
	w.Warmup, w.Duration = workloads.Duration(200*time.Millisecond), workloads.Duration(time.Second)
	w.TTL = workloads.Duration(5 * time.Second)
	change(&w)
	if wrong := errors.Join(append(server.Impossible(w.Faults), w.Validate())...); wrong != nil {
		t.Fatal(wrong)
	}
	job := engine.Job{Strategy: v, Workload: w, Target: server, Session: server.runID, Number: 1, Round: 1, Order: 1}
	if len(w.Faults) > 0 {
		injector := server.Faults(w.Faults)
		defer injector.Close()
		job.Faults = injector
	}
	result, err := job.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// sound is what every run must be.
func sound(t *testing.T, got *results.Run) {
	t.Helper()
	if !got.Valid() || got.Safety.Overlaps != 0 || got.Speed.Acquisitions == 0 {
		t.Errorf("invalid: %v, overlaps %d, acquisitions %d, errors %v", got.Invalid, got.Safety.Overlaps, got.Speed.Acquisitions, got.Errors)
	}
	if left := got.Safety.LeftoverCount; left == nil || *left != 0 {
		t.Errorf("left behind: %v", got.Safety.Leftovers)
	}
}

func TestARunOnEtcdOfOurOwn(t *testing.T) {
	for _, topology := range []string{"", "etcd:3"} {
		server := opened(t, store.Options{Topology: topology})
		for _, options := range []map[string]string{nil, {"watch": "next"}, {"sessions": "fresh"}} {
			got := run(t, server, options, func(w *workloads.Spec) { w.Work, w.Fence = workloads.WorkCounter, workloads.FenceAll })
			sound(t, got)
			whole := got.Server.Whole
			if whole == nil || whole.CPU == nil || *whole.CPU <= 0 || *whole.ClientBytesOut <= 0 || *whole.ClientBytesIn <= 0 || *whole.RoundTrips <= 0 {
				t.Fatalf("what etcd did is not known: %+v", whole)
			}
			if whole.Commands["Txn"] < 4*whole.Acquisitions { // two of the lock, two of the counter
				t.Errorf("%d acquisitions and %v", whole.Acquisitions, whole.Commands)
			}
			if lost := got.Safety.LostUpdates; lost == nil || *lost != 0 {
				t.Errorf("lost updates: %v", lost)
			}
			t.Logf("%s %v: %.0f acquisitions a second, CPU %.2f s, %v", topology, options, got.Speed.PerSecond, *whole.CPU, whole.Commands)
		}
	}
}

// content is all that an etcd has, with its leases.
func content(t *testing.T, client *clientv3.Client) string {
	t.Helper()
	all, err := client.Get(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	leases, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(all.Kvs, leases.Leases)
}

// A user's etcd has the same keys and leases after a run as before, and what a dead run left
// is removed, but not what a living one has.
func TestAUsersEtcdStaysAsItWas(t *testing.T) {
	theirs := etcdtest.Start(t, 1)
	outside := theirs.Client(t)
	put := func(key string) {
		if _, err := outside.Put(t.Context(), key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	put("theirs")
	other := opened(t, store.Options{Address: "etcd://" + theirs.Endpoints[0]})
	put("lockbench:{" + other.runID + ":1:0}")
	before := content(t, outside)
	put("lockbench:{dead0000:1:0}:counter")

	server, err := Store{}.Open(t.Context(), "mine", store.Options{Address: "etcd://" + theirs.Endpoints[0]})
	if err != nil {
		t.Fatal(err)
	}
	s := server.(*Server)
	got := run(t, s, nil, func(w *workloads.Spec) { w.Work = workloads.WorkCounter })
	sound(t, got)
	if whole := got.Server.Whole; whole == nil || whole.Calls == nil || whole.CPU == nil {
		t.Errorf("its counters are not told: %+v", whole)
	}
	if _, err := s.RoundTrips(t.Context(), "lockbench:mine:floors"); err != nil {
		t.Error(err)
	}
	if d := s.Describe(); d.Source != "address" || d.Name != "etcd" || d.Version == "" || d.Network != "loopback" {
		t.Errorf("%+v", d)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if after := content(t, outside); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestConnectionsHaveNames(t *testing.T) {
	theirs := etcdtest.Start(t, 1)
	server := opened(t, store.Options{Address: "etcd://" + theirs.Endpoints[0]})
	connected, err := server.Connect(t.Context(), "lockbench:mine:run1:a", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	names, err := server.Connected(t.Context(), "lockbench:mine:run1:")
	if err != nil || !slices.Equal(names, []string{"lockbench:mine:run1:a"}) {
		t.Errorf("connected are %q (%v)", names, err)
	}
	left, err := server.Leftovers(t.Context(), "{mine:1:", "lockbench:mine:run1:a")
	if err != nil || len(left.Connections) != 1 || len(left.Keys) != 0 {
		t.Errorf("left are %+v (%v)", left, err)
	}
	if err := connected.Close(); err != nil {
		t.Error(err)
	}
	if names, _ := server.Connected(t.Context(), "lockbench:mine:run1:"); len(names) > 0 {
		t.Errorf("still connected are %q", names)
	}
}

func TestLeftoversAreFoundAndRemoved(t *testing.T) {
	server := opened(t, store.Options{})
	granted, err := server.client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 * page / 100 {
		if _, err := server.client.Put(t.Context(), fmt.Sprintf("lockbench:{mine:1:%d}", n), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := server.client.Put(t.Context(), "lockbench:{other:1:0}", "", clientv3.WithLease(granted.ID)); err != nil {
		t.Fatal(err)
	}
	left, err := server.Leftovers(t.Context(), "{mine:1:", "")
	if err != nil || len(left.Keys) != 2*page/100+1 {
		t.Fatalf("left are %+v (%v)", left, err)
	}
	if err := server.Remove(t.Context(), left.Keys); err != nil {
		t.Fatal(err)
	}
	if left, err := server.Leftovers(t.Context(), "{mine:1:", ""); err != nil || len(left.Keys) > 0 {
		t.Errorf("left are %+v (%v)", left, err)
	}
}

// What a reading takes is part of what a run costs.
func BenchmarkRead(b *testing.B) {
	server, err := Store{}.Open(b.Context(), "bench", store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close(context.Background())
	for b.Loop() {
		if _, err := server.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCounter(t *testing.T) {
	server := opened(t, store.Options{})
	connected, err := server.Connect(t.Context(), "lockbench:mine", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	ctx := t.Context()
	at := func(fence workloads.Fence, token int64) store.Counter {
		return connected.Counter(string(fence), fence, token)
	}
	for _, fence := range []workloads.Fence{workloads.FenceOff, workloads.FenceWrites, workloads.FenceAll} {
		if n, err := at(fence, 9).Read(ctx); n != 0 || err != nil {
			t.Errorf("%s: a new counter is %d (%v)", fence, n, err)
		}
		if err := at(fence, 9).Write(ctx, 41); err != nil {
			t.Errorf("%s: %v", fence, err)
		}
		if n, err := at(fence, 10).Read(ctx); n != 41 || err != nil {
			t.Errorf("%s: it is %d (%v)", fence, n, err)
		}
		_, read := at(fence, 8).Read(ctx)
		if stale := errors.Is(read, store.ErrStale); stale != (fence == workloads.FenceAll) {
			t.Errorf("%s: a late reader was told %v", fence, read)
		}
		write := at(fence, 9).Write(ctx, 7) // 9 wrote before, and 10 has read since
		if stale := errors.Is(write, store.ErrStale); stale != (fence == workloads.FenceAll) {
			t.Errorf("%s: a late writer was told %v", fence, write)
		}
		if fence == workloads.FenceWrites {
			if err := at(fence, 8).Write(ctx, 7); !errors.Is(err, store.ErrStale) {
				t.Errorf("%s: an older writer was told %v", fence, err)
			}
		}
	}
}

func TestRoundTrips(t *testing.T) {
	server := opened(t, store.Options{})
	times, err := server.RoundTrips(t.Context(), "lockbench:mine:floors")
	if err != nil || times.PingP50 == nil || *times.PingP50 <= 0 || *times.PingP99 < *times.PingP50 || times.ScriptP50 == nil || *times.ScriptP50 <= 0 {
		t.Errorf("%+v (%v)", times, err)
	}
	if left, err := server.Leftovers(t.Context(), "lockbench", ""); err != nil || len(left.Keys) > 0 {
		t.Errorf("left are %+v (%v)", left, err)
	}
}

func TestDurability(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if d := opened(t, store.Options{Durability: store.Synced}).Describe().Durability; d != "fsync" {
		t.Errorf("it is %q", d)
	}
	server, err := Store{}.Open(t.Context(), "mine", store.Options{Durability: store.InMemory})
	if strings.Contains(string(version), "Version: 3.4.") {
		if !errors.Is(err, store.ErrConfig) || !strings.Contains(err.Error(), "3.5") {
			t.Errorf("etcd 3.4 was met with %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := server.Describe().Durability; d != "memory" {
		t.Errorf("it is %q", d)
	}
	_ = server.Close(t.Context())
}

func TestNoProgram(t *testing.T) {
	t.Setenv("LOCKBENCH_ETCD_SERVER", "no-such-etcd")
	_, err := Store{}.Open(t.Context(), "mine", store.Options{})
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "apt-get install etcd-server") {
		t.Errorf("%v", err)
	}
}

const victim = "LOCKBENCH_TEST_VICTIM"

// TestHelperVictim opens an etcd and waits to be killed.
func TestHelperVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		t.Skip("it only runs as another test's subprocess")
	}
	server, err := Store{}.Open(t.Context(), "victim", store.Options{Topology: "etcd:3"})
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, m := range server.(*Server).members {
		pids = append(pids, m.own.PID())
	}
	fmt.Println("started", pids[0], pids[1], pids[2])
	select {}
}

// What a lockbench that was killed had started is ended by the next.
func TestSweepOfAKilledLockbench(t *testing.T) {
	lockbench := exec.Command(os.Args[0], "-test.run=^TestHelperVictim$")
	lockbench.Env = append(os.Environ(), victim+"=1")
	out, err := lockbench.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lockbench.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [3]int
	if _, err := fmt.Fscanf(out, "started %d %d %d\n", &pids[0], &pids[1], &pids[2]); err != nil {
		t.Fatal(err)
	}
	_ = lockbench.Process.Kill()
	_ = lockbench.Wait()
	alive := func() (n int) {
		for _, pid := range pids {
			if _, err := os.Stat(fmt.Sprint("/proc/", pid)); err == nil {
				n++
			}
		}
		return n
	}
	if alive() != 3 {
		t.Fatalf("%d of 3 are there", alive())
	}
	opened(t, store.Options{})
	for end := time.Now().Add(time.Minute); alive() != 0; time.Sleep(10 * time.Millisecond) { // their new parent has to notice
		if time.Now().After(end) {
			t.Fatalf("%d of 3 are still there", alive())
		}
	}
}
