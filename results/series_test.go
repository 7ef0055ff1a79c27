package results

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/workloads/spec"
)

// Two workloads of the same name would be taken for one history.
func TestASeriesNamesWhatIsNotUsual(t *testing.T) {
	var timeout spec.Duration
	for want, change := range map[string]func(*spec.Spec){
		"spin/c100":        func(*spec.Spec) {},
		"spin/c7":          func(w *spec.Spec) { w.Clients, w.Instances = 7, 7 },
		"spin/c100/keys=4": func(w *spec.Spec) { w.Keys = 4 },
		"spin/c100/stages=10s:5,1s:9": func(w *spec.Spec) {
			w.Stages = spec.Stages{{Duration: spec.Duration(10 * time.Second), Target: 5}, {Duration: spec.Duration(time.Second), Target: 9}}
		},
		"spin/c100/gather=50ms":            func(w *spec.Spec) { w.Gather = spec.Duration(50 * time.Millisecond) },
		"spin/c100/work=counter":           func(w *spec.Spec) { w.Work = spec.WorkCounter },
		"spin/c100/work=counter/fence=off": func(w *spec.Spec) { w.Work, w.Fence = spec.WorkCounter, spec.FenceOff },
		"spin/c100/timeout=0s":             func(w *spec.Spec) { w.Timeout = &timeout },
		"spin/c100/rate=20|s/hold=1ms/faults=script-flush:at=1s;waiter-crash:at=2s,n=5/coalesce=true": func(w *spec.Spec) {
			w.Rate, w.Hold, w.Coalesce = 20, spec.Fixed(time.Millisecond), true
			w.Faults = []spec.Fault{{Name: spec.ScriptFlush, At: spec.Duration(time.Second)}, {Name: spec.WaiterCrash, At: spec.Duration(2 * time.Second), N: 5}}
		},
		"spin/c4": func(w *spec.Spec) {
			w.Clients, w.Instances, w.Seed, w.Pool, w.Arrivals = 4, 4, 9, 3, spec.ArrivalsConstant
			w.Duration, w.Warmup, w.Iterations = 1, 0, 7
		},
	} {
		w := spec.Default()
		change(&w)
		if got := (summary{Strategy: Strategy{Name: "spin"}, workload: w}).series(); got != want {
			t.Errorf("series %s, want %s", got, want)
		}
	}
}
