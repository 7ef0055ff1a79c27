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
		j.Strategy = (&queue{}).strategy()
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
