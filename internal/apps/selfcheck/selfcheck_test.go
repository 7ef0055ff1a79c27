package selfcheck

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/workloads"
)

func init() { strategies.RegisterStrategy(redisson.Strategies()...) } // the checks use pubsub

func TestMain(m *testing.M) {
	servers.Quiet()
	// After a server has died, go-redis dials it once a second. The goroutine that dials notices only at its next try that
	// the pool has been closed, so it may outlive the tests.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func quick() Effort {
	return Effort{Stalled: 2 * time.Second, Window: 600 * time.Millisecond}
}

// only runs the check with this name, and no other, on the server at address. change may replace parts of each job, for
// example to plant a fault.
func only(t *testing.T, name, address string, change func(engine.Job) engine.Job) Check {
	t.Helper()
	found, err := Run(t.Context(), Options{
		Redis: lockbench.StoreOptions{Address: address}, Only: []string{name}, Effort: quick(), Change: change,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Checks) != 1 || found.Checks[0].Name != name {
		t.Fatalf("%s: checks %+v", name, found.Checks)
	}
	return found.Checks[0]
}

// failed describes each figure of c whose verdict is Fail.
func failed(c Check) []string {
	var names []string
	for _, m := range c.Measured {
		if m.Verdict == Fail {
			names = append(names, fmt.Sprintf("%s: %v, not %s", m.Name, *m.Value, m.Wanted))
		}
	}
	return names
}

// Each check must fail with the fault that it was designed to detect. The checks marked calm must not fail without a
// fault. The others are not tested without a fault, because a busy machine can make them fail.
func TestEachCheckFindsItsFault(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(engine.Job) engine.Job
		found string // part of the name of a figure that must fail
		calm  bool   // without the fault, the check does not fail even on a busy machine
	}{
		{"omission", func(j engine.Job) engine.Job { // a closed loop: no client requests the lock during the stall
			j.Workload.Rate, j.Workload.Clients, j.Workload.Hold = 0, 1, workloads.Dist{}
			return j
		}, "p99", false},
		{"holds", func(j engine.Job) engine.Job { // the holds are too short
			j.Workload.Hold = workloads.Fixed(j.Workload.Hold.Mean() * 9 / 10)
			return j
		}, "hold p50", true},
		{"audit", func(j engine.Job) engine.Job { // the TTL is so short that the audit treats each lease as expired
			j.Workload.TTL = workloads.Duration(time.Nanosecond)
			return j
		}, "found by the audit", true},
		{"outside", func(j engine.Job) engine.Job { // the report does not contain a hundred commands
			sendForeignCommands(t, j, 100)
			return j
		}, "commands that the report counts differently", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := only(t, test.name, redisserver.Quickest(), test.fault)
			if c.Verdict != Fail || !strings.Contains(strings.Join(failed(c), ", "), test.found) {
				t.Errorf("with a fault it is %s: %q, %q failed, want %q", c.Verdict, c.Why, failed(c), test.found)
			}
			if !test.calm {
				return
			}
			if c := only(t, test.name, redisserver.Quickest(), nil); c.Verdict == Fail {
				t.Errorf("without a fault %q failed", failed(c))
			}
		})
	}
}

// exaggerating is a Locker that makes long waits three times as long: it releases the lease, sleeps for twice the wait,
// and acquires the lock again.
type exaggerating struct{ strategies.Locker }

func (e exaggerating) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	asked := time.Now()
	lease, err := e.Locker.Acquire(ctx, key)
	took := time.Since(asked)
	if err != nil || took < 50*time.Millisecond {
		return lease, err
	}
	if err := lease.Release(ctx); err != nil {
		return nil, err
	}
	select {
	case <-time.After(2 * took):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return e.Locker.Acquire(ctx, key)
}

// The test makes long waits three times as long, as a harness does that corrects twice for a stall. The check omission
// must not pass.
func TestExaggeratedStallIsDetected(t *testing.T) {
	t.Parallel()
	c := only(t, "omission", redisserver.Quickest(), func(j engine.Job) engine.Job {
		honest := j.Strategy
		j.Strategy = strategies.Unlisted(honest.Info(), func(c goredis.Config) (strategies.Locker, error) {
			locker, err := goredis.Open(honest, c)
			return exaggerating{locker}, err
		})
		return j
	})
	for _, m := range c.Measured {
		if strings.Contains(m.Name, "upper limit") && m.Verdict != Pass {
			return
		}
	}
	t.Errorf("with waits three times as long it is %s: %+v", c.Verdict, c.Measured)
}

// sendForeignCommands sends pings to the job's server from a client that is not part of the run.
func sendForeignCommands(t *testing.T, job engine.Job, commands int) {
	connected, err := job.Target.Connect(t.Context(), "stranger", 1, nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer connected.Close()
	client := connected.Nodes()[0].(goredis.Node).Client
	for range commands {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
}

func TestUserServerIsNeverStalled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if c := only(t, "omission", server.URL(), nil); c.Verdict != Inconclusive || len(c.Why) != 1 {
		t.Errorf("omission: %s, %q", c.Verdict, c.Why)
	}
	disturbed := func(j engine.Job) engine.Job {
		sendForeignCommands(t, j, 100)
		return j
	}
	if c := only(t, "outside", server.URL(), disturbed); c.Verdict != Inconclusive {
		t.Errorf("outside, with a stranger: %s", c.Verdict)
	}
}

func TestStallShowsInOpenLoop(t *testing.T) {
	t.Parallel()
	c := only(t, "omission", redisserver.Quickest(), nil)
	for _, m := range c.Measured {
		if m.Verdict == Fail && !strings.Contains(m.Name, "not stalled") { // a busy machine may be slow all the time
			t.Errorf("%s is %v, want %s", m.Name, *m.Value, m.Wanted)
		}
	}
}

func TestInterruptSkipsRemainingChecks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	found, err := Run(ctx, Options{
		Redis: lockbench.StoreOptions{Address: redisserver.Quickest()}, Only: []string{"audit", "outside"}, Effort: quick(),
		Progress: func(what string) {
			if strings.HasPrefix(what, "outside") {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found.Interrupted || len(found.Checks) != 1 {
		t.Errorf("interrupted %v, checks %+v", found.Interrupted, found.Checks)
	}
}

// In virtual time, only the holds and the gaps between arrivals take time, so each wait is known exactly: a client
// obtains the lock at its request, or when the previous client releases the lock (D. V. Lindley, The theory of queues
// with a single server, Math. Proc. Camb. Phil. Soc. 48, 1952).
func TestVirtualTimeWaitsMatchLindley(t *testing.T) {
	for load, hold := range map[float64]string{0.5: "exp:1ms", 0.7: "uniform:0s,2ms", 0.9: "1ms"} {
		synctest.Test(t, func(t *testing.T) {
			seen := &records{}
			run := virtual.Run(t, seen, func(w *workloads.Spec) {
				w.Hold, w.Rate, w.Iterations = virtual.Dist(t, hold), workloads.Rate(load*1000), 3000
			})
			all := slices.SortedFunc(slices.Values(seen.all), func(a, b engine.Acquisition) int {
				return cmp.Or(cmp.Compare(a.Granted, b.Granted), cmp.Compare(a.Released, b.Released))
			})
			if len(all) != 3000 || run.Speed.Acquisitions != 3000 {
				t.Errorf("at %v: %d customers seen, %d reported", load, len(all), run.Speed.Acquisitions)
			}
			var free, waits, wrong int64
			for _, a := range all {
				if a.Granted != max(a.Asked, free) {
					wrong++
				}
				waits += a.Granted - a.Asked
				free = a.Released
			}
			if wrong > 0 || waits == 0 {
				t.Errorf("at %v: %d waits of %d ns in all are not Lindley's", load, wrong, waits)
			}
			got := *run.Waiting.PerAcquisition.MeanNS * float64(len(all))
			if !near(got, float64(waits), float64(waits)*1e-6) {
				t.Errorf("at %v: the report's waits are %v ns, of the instants %v", load, got, waits)
			}
		})
	}
}

func TestSelfcheckOutput(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	s := &Document{
		Head: document.Head{
			Schema: schema, Tool: results.Tool{Name: "lockbench", Version: "v1"},
			Redis:       results.Redis{Version: "7.0.15", Source: "process"},
			Environment: results.Environment{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26.0"},
		},
		Checks: []Check{
			{Name: "queueing", Shows: "waits are explained", Verdict: Fail, Seconds: 61.4, Measured: []Measure{
				{Name: "utilisation", Value: number(50.04), Unit: results.Percent},
				{Name: "holds off", Value: number(-5), Unit: results.Percent, Wanted: "within 2 %", Verdict: Fail},
				{Name: "longest wait", Value: number(1.5e9), Unit: results.Nanoseconds, Wanted: "any", Verdict: Pass},
			}},
			{
				Name: "omission", Shows: "a stall shows", Verdict: Inconclusive, Why: []string{"no server of ours"},
				Measured: []Measure{{Name: "waits", Unit: results.Number, Wanted: "some", Verdict: Inconclusive}},
			},
		},
	}
	var table bytes.Buffer
	if err := document.WriteTable(&table, s, 120, false); err != nil {
		t.Fatal(err)
	}
	want := `lockbench v1  linux/amd64, 2 CPUs, Go 1.26.0  Redis 7.0.15 (process)

queueing  FAIL  waits are explained (61 s)
  utilisation   50.0 %
  holds off     −5.00 %  within 2 %  FAIL
  longest wait  1.50 s   any

omission  inconclusive  a stall shows (0 s)
  ! no server of ours
  waits  –  some  inconclusive
`
	if table.String() != want {
		t.Errorf("it reads\n%s\nwant\n%s", table.String(), want)
	}
	if got := s.With(Fail); !slices.Equal(got, []string{"queueing"}) {
		t.Errorf("failed: %v", got)
	}
	var text bytes.Buffer
	if err := document.WriteJSON(&text, s); err != nil || !strings.Contains(text.String(), `"value": null`) {
		t.Errorf("in JSON it is\n%s, %v", text.String(), err)
	}
}

func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		note func(*Check)
		want results.Verdict
	}{
		"nothing measured": {func(*Check) {}, Inconclusive},
		"as wanted":        {func(c *Check) { c.want(true, "x", 1, "", "1") }, Pass},
		"not as wanted":    {func(c *Check) { c.want(true, "x", 1, "", "1"); c.want(false, "y", 2, "", "1") }, Fail},
		"not known":        {func(c *Check) { c.want(false, "x", math.NaN(), "", "1") }, Inconclusive},
		"not carried out":  {func(c *Check) { c.want(true, "x", 1, "", "1"); c.unsure("no Redis") }, Inconclusive},
		"fault and trouble": {func(c *Check) {
			c.unsure("restless")
			c.want(false, "x", 1, "", "2")
			c.want(false, "y", math.NaN(), "", "2")
		}, Fail},
	} {
		var c Check
		test.note(&c)
		if c.conclude(); c.Verdict != test.want {
			t.Errorf("%s: %s, want %s", name, c.Verdict, test.want)
		}
	}
}

func TestOverlapsFromInstants(t *testing.T) {
	found := overlaps([]engine.Acquisition{
		{Granted: 100, Released: 200},
		{Granted: 0, Released: 100},   // ends when the first begins: no overlap
		{Granted: 190, Released: 300}, // overlaps the first by 10
		{Granted: 400, Released: 900},
		{Granted: 500, Released: 600}, // within the previous one
	})
	if len(found) != 2 || found[0] != 10 || found[1] != 100 {
		t.Errorf("found %v", found)
	}
}
