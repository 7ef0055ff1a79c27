package results

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/lockbench/lockbench/workloads"
)

// fewestBatches are what an interval of a single run takes.
const fewestBatches = 5

// withinRun is half of the 95 % interval of a run's acquisitions per second, in percent
// of them, from the run's own seconds as batch means (A. M. Law, Simulation Modeling and
// Analysis, §9.5.3): each second's rate counts as one observation, and the interval of
// their mean is Student's. It says how steady the run was, not what another one would
// come to. nil for less than five seconds, and for a load that is meant to change
// meanwhile.
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
		if s.Seconds > longest/2 { // what is left at the end is no whole one
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

// Steady says whether any run of the report is long and even enough for an interval of its
// own seconds.
func (r *Report) Steady() bool {
	return slices.ContainsFunc(r.Runs, func(run Run) bool { return run.withinRun(r.WorkloadOf(run)) != nil })
}
