package render

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Two workloads of the same name would be taken for one history.
func TestASeriesNamesWhatIsNotUsual(t *testing.T) {
	var timeout workloads.Duration
	for want, change := range map[string]func(*workloads.Spec){
		"spin/c100":        func(*workloads.Spec) {},
		"spin/c7":          func(w *workloads.Spec) { w.Clients, w.Instances = 7, 7 },
		"spin/c100/keys=4": func(w *workloads.Spec) { w.Keys = 4 },
		"spin/c100/stages=10s:5,1s:9": func(w *workloads.Spec) {
			w.Stages = workloads.Stages{{Duration: workloads.Duration(10 * time.Second), Target: 5}, {Duration: workloads.Duration(time.Second), Target: 9}}
		},
		"spin/c100/burst=50ms":             func(w *workloads.Spec) { w.Burst = workloads.Duration(50 * time.Millisecond) },
		"spin/c100/work=counter":           func(w *workloads.Spec) { w.Work = workloads.WorkCounter },
		"spin/c100/work=counter/fence=off": func(w *workloads.Spec) { w.Work, w.Fence = workloads.WorkCounter, workloads.FenceOff },
		"spin/c100/timeout=0s":             func(w *workloads.Spec) { w.Timeout = &timeout },
		"spin/c100/rate=20|s/hold=1ms/faults=script-flush:at=1s;waiter-crash:at=2s,n=5/coalesce=true": func(w *workloads.Spec) {
			w.Rate, w.Hold, w.Coalesce = 20, workloads.Fixed(time.Millisecond), true
			w.Faults = []workloads.Fault{{Name: workloads.ScriptFlush, At: workloads.Duration(time.Second)}, {Name: workloads.WaiterCrash, At: workloads.Duration(2 * time.Second), N: 5}}
		},
		"spin/c4": func(w *workloads.Spec) {
			w.Clients, w.Instances, w.Seed, w.Pool, w.Arrivals = 4, 4, 9, 3, workloads.ArrivalsConstant
			w.Duration, w.Warmup, w.Iterations = 1, 0, 7
		},
	} {
		w := workloads.Default()
		change(&w)
		if got := series(results.Summary{Strategy: results.Strategy{Name: "spin"}, Workload: w}); got != want {
			t.Errorf("series %s, want %s", got, want)
		}
	}
}
