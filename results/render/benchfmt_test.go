package render

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Two workloads of the same name would be taken for one benchmark.
func TestABenchmarkNamesWhatIsNotUsual(t *testing.T) {
	var timeout workloads.Duration
	for want, change := range map[string]func(*workloads.Spec){
		"clients=100/keys=1/hold=0s": func(*workloads.Spec) {},
		"clients=7/keys=1/hold=0s":   func(w *workloads.Spec) { w.Clients, w.Instances = 7, 7 },
		"clients=100/keys=4/hold=0s": func(w *workloads.Spec) { w.Keys = 4 },
		"clients=100/keys=1/hold=0s/stages=10s:5,1s:9": func(w *workloads.Spec) {
			w.Stages = workloads.Stages{{Duration: workloads.Duration(10 * time.Second), Target: 5}, {Duration: workloads.Duration(time.Second), Target: 9}}
		},
		"clients=100/keys=1/hold=0s/burst=50ms":             func(w *workloads.Spec) { w.Burst = workloads.Duration(50 * time.Millisecond) },
		"clients=100/keys=1/hold=0s/work=counter":           func(w *workloads.Spec) { w.Work = workloads.WorkCounter },
		"clients=100/keys=1/hold=0s/work=counter/fence=off": func(w *workloads.Spec) { w.Work, w.Fence = workloads.WorkCounter, workloads.FenceOff },
		"clients=100/keys=1/hold=0s/timeout=0s":             func(w *workloads.Spec) { w.Timeout = &timeout },
		"clients=100/keys=1/hold=1ms/rate=20|s/faults=script-flush:at=1s;waiter-crash:at=2s,n=5/coalesce=true": func(w *workloads.Spec) {
			w.Rate, w.Hold, w.Coalesce = 20, workloads.Fixed(time.Millisecond), true
			w.Faults = []workloads.Fault{{Name: workloads.ScriptFlush, At: workloads.Duration(time.Second)}, {Name: workloads.WaiterCrash, At: workloads.Duration(2 * time.Second), N: 5}}
		},
		"clients=4/keys=1/hold=0s": func(w *workloads.Spec) {
			w.Clients, w.Instances, w.Seed, w.Pool, w.Arrivals = 4, 4, 9, 3, workloads.ArrivalsConstant
			w.Duration, w.Warmup, w.Iterations = 1, 0, 7
		},
	} {
		w := workloads.Default()
		change(&w)
		if got := benchName("spin", w); got != "BenchmarkLock/strategy=spin/"+want {
			t.Errorf("benchmark %s, want %s", got, want)
		}
	}
}
