package lockbench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/blpop"
	"github.com/lockbench/lockbench/strategies/peers"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/workloads"
)

// init registers only the locks that these tests use, so that a change to any other lock does not invalidate Go's
// cached test results of this package.
func init() {
	strategies.RegisterStrategy(append(baselines.Strategies(), blpop.Strategy())...)
	strategies.RegisterStrategy(append(polled.Strategies(), redisson.Strategies()...)...)
	strategies.RegisterStrategy(peers.Strategies()...)
}

// measured measures the strategy in a single run and returns the run. change modifies the default workload before the
// run. The test fails if the run is invalid.
func measured(tb testing.TB, address, strategy string, change func(*workloads.Spec)) results.Run {
	tb.Helper()
	variants, err := strategies.ParseVariants(strategy)
	if err != nil {
		tb.Fatal(err)
	}
	plan := lockbench.Plan{
		Strategies: variants, Workload: workloads.Default(), Rounds: 1,
		Redis: lockbench.StoreOptions{Address: address},
	}
	plan.Workload.Warmup = workloads.Duration(100 * time.Millisecond)
	change(&plan.Workload)
	report, err := lockbench.Run(context.Background(), plan)
	if err != nil {
		tb.Fatal(err)
	}
	run := report.Runs[0]
	if !run.Valid() {
		tb.Fatalf("%s is invalid: %v", strategy, run.Invalid)
	}
	return run
}

// benchStrategies are the strategies that lockbench measures by default.
var benchStrategies = []string{"spin", "pubsub", "blpop", "redsync"}

// BenchmarkLock makes b.N acquisitions of one hot key in a closed loop. It reports the same metrics and units as
// lockbench -o benchfmt, so that benchstat can compare the two outputs.
//
//	go test -run '^$' -bench Lock -benchtime 2000x -count 6 . | benchstat -col /strategy -row /clients -
func BenchmarkLock(b *testing.B) {
	server := redistest.Start(b)
	for _, strategy := range benchStrategies {
		for _, c := range []struct {
			clients, instances int
			hold               time.Duration
		}{{1, 1, 0}, {100, 10, 0}, {100, 10, time.Millisecond}} {
			b.Run(fmt.Sprintf("strategy=%s/clients=%d/instances=%d/hold=%v", strategy, c.clients, c.instances, c.hold),
				func(b *testing.B) {
					run := measured(b, server.URL(), strategy, func(w *workloads.Spec) {
						w.Clients, w.Instances, w.Hold, w.Iterations = c.clients, c.instances, workloads.Fixed(c.hold),
							int64(b.N)
					})
					// Replace go test's ns/op, which would include set-up and warm-up.
					b.ReportMetric(float64(run.WindowNS)/float64(run.Speed.Acquisitions), "ns/op")
					fewTurns := run.Speed.Acquisitions < 20*int64(c.clients)
					for _, m := range results.BenchMetrics() {
						// With fewer than 20 turns per client, chance dominates wait_p99 and jain.
						if fewTurns && (m.Name == "wait_p99" || m.Name == "jain") {
							continue
						}
						if value, known := m.InBench(run); known {
							b.ReportMetric(value, m.Bench.Unit)
						}
					}
				})
		}
	}
}

// BenchmarkHarness measures the overhead of the harness. Its clients acquire and release a lock that does nothing, with
// all measurements on.
func BenchmarkHarness(b *testing.B) {
	for _, clients := range []int{2, 500} {
		b.Run(fmt.Sprintf("strategy=noop/clients=%d", clients), func(b *testing.B) {
			run := measured(b, "", "noop", func(w *workloads.Spec) {
				w.Clients, w.Instances, w.Iterations = clients, 1, int64(b.N)
			})
			b.ReportMetric(float64(run.WindowNS)/float64(run.Speed.Acquisitions), "ns/op")
			b.ReportMetric(run.Speed.PerSecond, "acq/s")
		})
	}
}
