package results

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/lockbench/lockbench/workloads"
)

// fewestBatches is the number of slices that the interval of a single run needs.
const fewestBatches = 5

// withinRun is half of the 95 % interval of a run's acquisitions per second, in percent of
// their mean. It takes the run's own slices as batch means (A. M. Law, Simulation Modeling
// and Analysis, §9.5.3): each slice's rate is one observation, and the interval is
// Student's. It says how steady this run was, not how another run would differ. nil with
// fewer than five slices, and for a load that changes by design.
func (r Run) withinRun(w workloads.Spec) *float64 {
	if len(w.Stages) > 0 || w.Burst > 0 || len(w.Faults) > 0 {
		return nil
	}
	longest := 0.0
	for _, s := range r.Timeline {
		longest = max(longest, s.Seconds)
	}
	var rates []float64
	for _, s := range r.Timeline {
		if s.Seconds > longest/2 { // the shorter rest at the end is no whole slice
			rates = append(rates, float64(s.Acquisitions)/s.Seconds)
		}
	}
	mean := stats.Mean(rates)
	if len(rates) < fewestBatches || mean <= 0 {
		return nil
	}
	n := float64(len(rates))
	t := stats.InvCDF(stats.TDist{V: n - 1})(0.975)
	return new(t * stats.StdDev(rates) / math.Sqrt(n) / mean * 100)
}

// Steady says whether any run of the report is long and even enough for such an interval.
func (r *Report) Steady() bool {
	return slices.ContainsFunc(r.Runs, func(run Run) bool { return run.withinRun(r.WorkloadOf(run)) != nil })
}
