package cohort_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// BenchmarkAlone compares cohort with handoff where it has nothing to gain, in processes
// with one client each: the two take turns of 200 ms, and the median of their ratios is
// what counts.
func BenchmarkAlone(b *testing.B) {
	const processes, slice = 50, 200 * time.Millisecond
	server := redistest.Start(b)
	open := func(name string) (all []strategies.Locker) {
		for range processes {
			all = append(all, trial.Start(b, server, name, time.Minute).Locker)
		}
		return all
	}
	handoff, cohort := open("handoff"), open("cohort")
	var ratios []float64
	for b.Loop() {
		h, c := trial.Rate(b, handoff, "handoff", processes, slice), trial.Rate(b, cohort, "cohort", processes, slice)
		ratios = append(ratios, c/h)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "cohort/handoff")
}
