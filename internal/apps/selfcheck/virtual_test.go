package selfcheck

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/workloads"
)

// In virtual time only the holds and the gaps between arrivals take time, so that every wait is known exactly: a
// customer gets the lock when it asks, or when the one before releases it (D. V. Lindley, The theory of queues
// with a single server, Math. Proc. Camb. Phil. Soc. 48, 1952).
func TestInVirtualTimeEveryWaitIsLindleys(t *testing.T) {
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

// In virtual time no stall of the machine can hide a fault or look like one: starvation finds an engine that does
// not see who starves, and an honest one passes.
func TestInVirtualTimeStarvationIsFound(t *testing.T) {
	blind := func(j engine.Job) engine.Job {
		j.Strategy = (&queue{}).strategy()
		return j
	}
	honest := func(j engine.Job) engine.Job { return j }
	for name, change := range map[string]func(engine.Job) engine.Job{"blind": blind, "honest": honest} {
		found := Check{Name: "starvation"}
		synctest.Test(t, func(t *testing.T) {
			s := &session{id: "virtual", Options: Options{Effort: quick(), Change: func(j engine.Job) engine.Job {
				j.Target, j.VirtualTime = nil, true
				return change(j)
			}}}
			if err := s.starvation(t.Context(), &found); err != nil {
				t.Error(err)
			}
			found.conclude()
		})
		got := strings.Join(failed(found), ", ")
		for _, want := range []string{"starved clients", "overtaken", "largest bypass"} {
			if strings.Contains(got, "starving: "+want) != (name == "blind") {
				t.Errorf("%s: %s: %q failed", name, found.Verdict, got)
			}
		}
		if (found.Verdict == Pass) != (name == "honest") {
			t.Errorf("%s: it is %s: %+v", name, found.Verdict, found.Measured)
		}
	}
}
