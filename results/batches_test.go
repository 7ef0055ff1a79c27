package results

import (
	"math"
	"testing"

	"github.com/lockbench/lockbench/workloads"
)

func perSecond(rates ...int64) []Slice {
	var all []Slice
	for i, n := range rates {
		all = append(all, Slice{At: float64(i), Seconds: 1, Acquisitions: n})
	}
	return all
}

func TestASingleRunsSecondsSayHowSteadyItWas(t *testing.T) {
	r := Run{Timeline: perSecond(90, 110, 90, 110, 100)}
	// Mean 100, standard deviation 10, t(4, 0.975) = 2.7764.
	if got, want := r.withinRun(workloads.Spec{}), 2.7764*10/math.Sqrt(5); got == nil || math.Abs(*got-want) > 0.001 {
		t.Errorf("± %v %%, want %v", got, want)
	}
	// What is left at the end is too short to be one of them.
	r.Timeline = append(r.Timeline, Slice{At: 5, Seconds: 0.2, Acquisitions: 200})
	if got := r.withinRun(workloads.Spec{}); got == nil || *got > 13 {
		t.Errorf("with a rest ± %v %%", got)
	}
	for name, w := range map[string]workloads.Spec{"stages": {Stages: workloads.Stages{{}}}, "bursts": {Burst: 1}, "faults": {Faults: []workloads.Fault{{}}}} {
		if got := r.withinRun(w); got != nil {
			t.Errorf("%s: ± %v %%", name, *got)
		}
	}
	for name, slices := range map[string][]Slice{"too few": perSecond(90, 110, 90, 110), "none": nil, "nothing acquired": perSecond(0, 0, 0, 0, 0)} {
		if got := (Run{Timeline: slices}).withinRun(workloads.Spec{}); got != nil {
			t.Errorf("%s: ± %v %%", name, *got)
		}
	}
}
