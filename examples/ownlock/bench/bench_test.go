package main

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/ownlock"
	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// silent discards go-redis's messages about a server that has not started yet.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() {
	redis.SetLogger(silent{})
	strategies.RegisterStrategy(ownlock.Strategy()) // main.go's imports register the others
}

// Benchmark measures b.N acquisitions by 20 clients, for ownlock and, for comparison, for spin:
//
//	go test -run '^$' -bench . -benchtime 2000x -count 6 | benchstat -col /strategy -
func Benchmark(b *testing.B) {
	for _, name := range []string{"ownlock", "spin"} {
		b.Run("strategy="+name, func(b *testing.B) {
			variants, err := strategies.ParseVariants(name)
			if err != nil {
				b.Fatal(err)
			}
			plan := lockbench.Plan{
				Strategies: variants, Workload: workloads.Default(), Rounds: 1,
				Redis: lockbench.StoreOptions{Address: "process"},
			}
			w := &plan.Workload
			w.Clients, w.Instances, w.Iterations = 20, 4, int64(b.N)
			w.Hold, w.Warmup = workloads.Fixed(time.Millisecond), workloads.Duration(100*time.Millisecond)
			report, err := lockbench.Run(b.Context(), plan)
			if err != nil {
				b.Fatal(err)
			}
			run := report.Runs[0]
			if !run.Valid() {
				b.Fatalf("the run cannot be trusted: %v", run.Invalid)
			}
			b.ReportMetric(float64(run.WindowNS)/float64(run.Speed.Acquisitions), "ns/op")
			for _, m := range results.BenchMetrics() {
				if value, known := m.InBench(run); known {
					b.ReportMetric(value, m.Bench.Unit)
				}
			}
		})
	}
}
