package lockbench_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/workloads"
)

func TestMain(m *testing.M) {
	poll.ManyAtATime()
	servers.Quiet()
	// go-redis tries once a second to reconnect to a dead server. The goroutine that tries ends only at its next try after
	// its pool has been closed, so it does not count as a leak.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// plan returns a plan for short runs on the server at address. list contains the strategies, separated by commas. If
// change is not nil, it modifies the plan.
func plan(t *testing.T, address, list string, change func(*lockbench.Plan)) lockbench.Plan {
	t.Helper()
	variants, err := strategies.ParseVariants(list)
	if err != nil {
		t.Fatal(err)
	}
	p := lockbench.Plan{
		Strategies: variants, Workload: workloads.Default(), Rounds: 1,
		Redis: lockbench.StoreOptions{Address: address},
	}
	p.Workload.Clients, p.Workload.Instances = 20, 4
	p.Workload.Warmup, p.Workload.Iterations = 0, 300 // independent of the time
	if change != nil {
		change(&p)
	}
	return p
}

func order(runs []results.Run) []string {
	var names []string
	for _, r := range runs {
		names = append(names, fmt.Sprintf("%d.%d %s", r.Round, r.Order, r.Strategy))
	}
	return names
}

func TestSeedDeterminesOrderOfStrategies(t *testing.T) {
	run := func(seed int64) *results.Report {
		report, err := lockbench.Run(t.Context(), plan(t, "", "noop,local", func(p *lockbench.Plan) {
			p.Rounds, p.Workload.Seed = 6, seed
		}))
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	first := run(1)
	if len(first.Runs) != 12 {
		t.Fatalf("%d runs", len(first.Runs))
	}
	for round := range 6 {
		pair := []string{first.Runs[2*round].Strategy, first.Runs[2*round+1].Strategy}
		if slices.Sort(pair); !slices.Equal(pair, []string{"local", "noop"}) {
			t.Errorf("round %d ran %v", round+1, pair)
		}
	}
	if diff := cmp.Diff(order(first.Runs), order(run(1).Runs)); diff != "" {
		t.Errorf("the same seed gave another order: %s", diff)
	}
	if cmp.Equal(order(first.Runs), order(run(2).Runs)) && cmp.Equal(order(first.Runs), order(run(3).Runs)) {
		t.Error("the seed does not change the order")
	}
	if first.Redis.Source != "none" {
		t.Errorf("a Redis was opened although no strategy needs one: %+v", first.Redis)
	}
}

func TestReportIsComplete(t *testing.T) {
	server := redistest.Start(t)
	complete := plan(t, server.URL(), "spin,pubsub,blpop,redsync", func(p *lockbench.Plan) { p.Baselines = true })
	report, err := lockbench.Run(t.Context(), complete)
	if err != nil {
		t.Fatal(err)
	}
	if report.Redis.Source != "address" || report.Redis.Version == "" || report.Environment.Kernel == "" {
		t.Errorf("redis %+v, environment %+v", report.Redis, report.Environment)
	}
	if f := report.Baselines; f == nil || f.NoopPerSecond == 0 || f.LocalPerSecond == 0 || *f.PingP50 == 0 ||
		*f.EvalP50 == 0 {
		t.Errorf("floors %+v", f)
	}
	var whole int64
	for _, run := range report.Runs {
		if !drive.Sound(&run) || len(run.Safety.Broken) > 0 || len(run.Errors) > 0 || *run.Safety.LeftoverCount > 0 {
			t.Errorf("%s: invalid %v, safety %+v, errors %v", run.Strategy, run.Invalid, run.Safety, run.Errors)
		}
		if run.Speed.Acquisitions == 0 || run.Server.Whole == nil || run.Server.Peak == nil {
			t.Errorf("%s: %+v", run.Strategy, run)
			continue
		}
		// On a busy machine, the server's counters may be read too late for such a short window, so missing counters do not
		// fail the test.
		if run.Labels.Has(results.NoServerCounts) {
			t.Logf("%s: %v", run.Strategy, run.Labels)
		} else if known := run.Effort.Attempts != nil; run.Server.Window == nil ||
			known == (run.Strategy == "redsync") {
			t.Errorf("%s: server %+v, effort %+v", run.Strategy, run.Server.Window, run.Effort)
		}
		whole += *run.Server.Whole.Calls
	}
	if total := *report.Server.Calls; total < whole || total > whole+2000 {
		t.Errorf("%d commands in all, %d in the runs", total, whole)
	}
	if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left %v", keys)
	}
}

func TestLimitsAreCheckedBeforeRuns(t *testing.T) {
	server := redistest.Start(t, "--maxclients", "100")
	began := server.Client(t).Info(t.Context(), "commandstats").Val()
	_, err := lockbench.Run(t.Context(), plan(t, server.URL(), "blpop,spin",
		func(p *lockbench.Plan) { p.Workload.Clients = 500 }))
	if !errors.Is(err, lockbench.ErrConfig) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"blpop", "spin", "maxclients 100"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	_, err = lockbench.Run(t.Context(), plan(t, redistest.Start(t).URL(), "blpop",
		func(p *lockbench.Plan) { p.Workload.Clients = 10_000_000 }))
	if !errors.Is(err, lockbench.ErrConfig) || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("error %v", err)
	}
	if strings.Contains(began, "cmdstat_set:") {
		t.Error("clients had started")
	}
}

func TestUnreachableRedisIsReported(t *testing.T) {
	began := time.Now()
	report, err := lockbench.Run(t.Context(), plan(t, "redis://user:secret@127.0.0.1:1", "spin", nil))
	if !errors.Is(err, lockbench.ErrUnreachable) || report != nil {
		t.Fatalf("report %v, error %v", report, err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%q contains the password", err)
	}
	if took := time.Since(began); took > 20*time.Second { // the run must not wait for a dead server
		t.Errorf("it took %v", took)
	}
}

func TestReportAfterRedisDies(t *testing.T) {
	server := redistest.Start(t)
	report, err := lockbench.Run(context.Background(),
		plan(t, server.URL(), "spin,pubsub,blpop,redsync", func(p *lockbench.Plan) {
			p.Progress = func(at lockbench.Progress) {
				if at.Run == 3 && at.Phase == "measure" {
					server.Kill()
				}
			}
		}))
	if !errors.Is(err, lockbench.ErrUnreachable) {
		t.Fatalf("error %v", err)
	}
	if report == nil || !report.Unreachable || report.Error == "" || len(report.Runs) < 2 ||
		!drive.Sound(&report.Runs[0]) {
		t.Errorf("report %+v", report)
	}
}

// demanding is a lock that needs a Redis version that does not exist yet, so every server is too old for it.
type demanding struct{ closable }

const lacking = "demanding needs Redis 99, this is older"

func (demanding) Prepare(context.Context, []string) error { return goredis.Unsupported(lacking) }

// A strategy must be left out before any measurement if it does not fit the servers, needs a newer server, or cannot be
// opened. The report must give the reason, and the other strategies must still run. If no strategy remains, Run must
// fail.
func TestUnusableStrategiesAreLeftOut(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	unsafe := errors.New("no key to the safe")
	for _, test := range []struct {
		name  string
		lock  strategies.Variant // for a lock that is not registered
		why   string
		fails error
	}{
		{name: "atomic", why: "--work counter"},
		{
			name: "demanding", why: lacking,
			lock: strategies.Unlisted(strategies.Info{Name: "demanding", Capacity: 1, Nodes: 1},
				func(strategies.Config) (demanding, error) { return demanding{closable{new(atomic.Bool)}}, nil }),
		},
		{
			name: "broken", fails: unsafe,
			lock: strategies.Unlisted(strategies.Info{Name: "broken"},
				func(strategies.Config) (closable, error) { return closable{}, unsafe }),
		},
	} {
		p := plan(t, server.URL(), "spin", func(p *lockbench.Plan) { p.Rounds = 2 })
		first := []strategies.Variant{test.lock}
		if test.name == "atomic" {
			first = plan(t, "", "atomic", nil).Strategies
		}
		p.Strategies = append(first, p.Strategies...)
		report, err := lockbench.Run(t.Context(), p)
		if !errors.Is(err, test.fails) || (report.Error == "") != (test.fails == nil) {
			t.Errorf("%s: error %v, in the report %q", test.name, err, report.Error)
		}
		left := report.LeftOut
		if len(left) != 1 || left[0].Strategy != test.name || !strings.Contains(left[0].Why.Text, test.why) {
			t.Errorf("left out %+v, want %s: %s", left, test.name, test.why)
		}
		if len(report.Runs) != 2 || report.Runs[0].Strategy != "spin" {
			t.Errorf("ran %v", order(report.Runs))
		}
		p.Strategies = first
		if _, err = lockbench.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), test.why) {
			t.Errorf("%s alone ended with %v", test.name, err)
		}
		if test.why == lacking && (!errors.Is(err, lockbench.ErrConfig) || left[0].Why.Text != lacking) {
			t.Errorf("a strategy that needs a newer server: left out %+v, alone %v", left, err)
		}
	}
}

// closable is a lock that admits every client until the value of closed becomes true, and no client afterwards.
type closable struct{ closed *atomic.Bool }

func (g closable) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	if g.closed.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return g, nil
}
func (g closable) Release(context.Context) error { return nil }
func (g closable) Close() error                  { return nil }

func TestSweepProgressNamesThePoint(t *testing.T) {
	var seen []string
	_, err := lockbench.Run(t.Context(), plan(t, "", "noop", func(p *lockbench.Plan) {
		for _, clients := range []int{1, 2} {
			w := p.Workload
			w.Clients, w.Instances = clients, 1
			p.Sweep = append(p.Sweep, workloads.Point{Label: fmt.Sprintf("clients=%d", clients), Workload: w})
		}
		p.Progress = func(at lockbench.Progress) {
			if at.Phase == "verify" {
				seen = append(seen, at.Strategy)
			}
		}
	}))
	slices.Sort(seen)
	if want := []string{"noop clients=1", "noop clients=2"}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("%q, %v", seen, err)
	}
}

func TestInterruptedSessionKeepsRuns(t *testing.T) {
	closed := new(atomic.Bool) // in the second run, which then lasts until it is interrupted
	lock := strategies.Unlisted(strategies.Info{Name: "gate"},
		func(strategies.Config) (closable, error) { return closable{closed}, nil })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report, err := lockbench.Run(ctx, plan(t, "", "noop", func(p *lockbench.Plan) {
		p.Strategies, p.Rounds = []strategies.Variant{lock}, 3
		p.Progress = func(at lockbench.Progress) {
			if closed.Store(at.Run == 2); at.Run == 2 && at.Phase == "measure" {
				cancel()
			}
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if !report.Interrupted || len(report.Runs) != 2 || report.Runs[0].Partial || !report.Runs[1].Partial {
		t.Errorf("interrupted %v, ran %v", report.Interrupted, order(report.Runs))
	}
}
