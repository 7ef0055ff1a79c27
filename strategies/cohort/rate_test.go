package cohort_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// BenchmarkAlone compares cohort with handoff where it has nothing to gain, in processes
// with one client each: the two take turns of 200 ms, and the median of their ratios is
// what counts.
func BenchmarkAlone(b *testing.B) {
	const processes = 50
	server := redistest.Start(b)
	open := func(name string) (all []trial.Process) {
		for range processes {
			all = append(all, trial.Start(b, server, name, time.Minute))
		}
		return all
	}
	handoff, cohort := open("handoff"), open("cohort")
	slice := func(all []trial.Process, key string) float64 {
		var clients sync.WaitGroup
		var turns atomic.Int64
		began := time.Now()
		for _, p := range all {
			clients.Go(func() {
				for time.Since(began) < 200*time.Millisecond {
					lease, err := p.Locker.Acquire(context.Background(), key)
					if err == nil {
						err = lease.Release(context.Background())
					}
					if err != nil {
						b.Error(err)
						return
					}
					turns.Add(1)
				}
			})
		}
		clients.Wait()
		return float64(turns.Load()) / time.Since(began).Seconds()
	}
	var ratios []float64
	for b.Loop() {
		h, c := slice(handoff, "handoff"), slice(cohort, "cohort")
		ratios = append(ratios, c/h)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "cohort/handoff")
}
