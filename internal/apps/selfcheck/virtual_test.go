package selfcheck

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/workloads"
)

// In virtual time nothing costs any time but the holds and the gaps between
// arrivals, so that what must come out is known exactly.
func TestInVirtualTimeEveryWaitIsLindleys(t *testing.T) {
	for load, hold := range map[float64]string{0.5: "exp:1ms", 0.7: "uniform:0s,2ms", 0.9: "1ms"} {
		synctest.Test(t, func(t *testing.T) {
			seen := &records{}
			run := virtual.Run(t, seen, func(w *workloads.Spec) {
				w.Hold, w.Rate, w.Iterations = virtual.Dist(t, hold), workloads.Rate(load*1000), 3000
			})
			p := lindley(seen.all)
			if p.customers != 3000 || int64(p.customers) != run.Speed.Acquisitions {
				t.Errorf("at %v: %d customers seen, %d reported", load, p.customers, run.Speed.Acquisitions)
			}
			if p.predicted == 0 || p.recorded != p.predicted || p.overtook > 0 {
				t.Errorf("at %v: waits of %v ns in all, predicted %v, %d overtook", load, p.recorded, p.predicted, p.overtook)
			}
			if got := *run.Waiting.PerAcquisition.MeanNS * float64(p.customers); got < p.predicted*0.999999 || got > p.predicted*1.000001 {
				t.Errorf("at %v: the report's waits come to %v ns, predicted %v", load, got, p.predicted)
			}
		})
	}
}

// virtually carries out a check that needs no server, in virtual time: no stall of the
// machine can hide a fault or look like one.
func virtually(t *testing.T, name string, change func(engine.Job) engine.Job) Check {
	t.Helper()
	found := Check{Name: name}
	synctest.Test(t, func(t *testing.T) {
		s := &session{id: "virtual", Options: Options{Effort: quick(), Change: func(j engine.Job) engine.Job {
			j.Target, j.VirtualTime = nil, true
			if change != nil {
				j = change(j)
			}
			return j
		}}}
		for _, c := range checks {
			if c.name != name {
				continue
			}
			if err := c.run(s, t.Context(), &found); err != nil {
				t.Error(err)
			}
			found.conclude()
		}
	})
	return found
}

// Each check of what needs no server finds what it is there to find, and an honest harness
// passes it.
func TestInVirtualTimeEachCheckFindsItsFault(t *testing.T) {
	blind := func(j engine.Job) engine.Job { // it does not see who starves
		j.Strategy = queueWith(false)
		return j
	}
	for _, test := range []struct {
		name  string
		fault func(engine.Job) engine.Job
		found []string // in the names of figures that fail
	}{
		{"starvation", blind, []string{"starving: starved clients"}},
		{"order", blind, []string{"newest first: overtaken", "newest first: largest bypass"}},
		{"percentiles", func(j engine.Job) engine.Job { // it takes waits for a fifth longer than they are
			j.Strategy = newDrawn(meanWait * 6 / 5).strategy()
			return j
		}, []string{"per client: p50"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := virtually(t, test.name, test.fault)
			for _, want := range test.found {
				if got := strings.Join(failed(c), ", "); !strings.Contains(got, want) {
					t.Errorf("with a fault it is %s: %q failed, want %q among them", c.Verdict, got, want)
				}
			}
			if c := virtually(t, test.name, nil); c.Verdict != Pass {
				t.Errorf("without a fault it is %s: %+v", c.Verdict, c.Measured)
			}
		})
	}
}
