package selfcheck

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/internal/virtual"
	"github.com/lockbench/lockbench/workloads/spec"
)

// In virtual time nothing costs any time but the holds and the gaps between
// arrivals, so that what must come out is known exactly.
func TestInVirtualTimeEveryWaitIsLindleys(t *testing.T) {
	for load, hold := range map[float64]string{0.5: "exp:1ms", 0.7: "uniform:0s,2ms", 0.9: "1ms"} {
		synctest.Test(t, func(t *testing.T) {
			seen := &records{}
			run := virtual.Run(t, seen, func(w *spec.Spec) {
				w.Hold, w.Rate, w.Iterations = virtual.Dist(t, hold), spec.Rate(load*1000), 3000
			})
			p := lindley(seen.counted())
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

// The timeline of a run grows up to 1,024 slices; from then on a thousand seconds
// more must take nothing.
func TestRecordingForLongAddsNoMemory(t *testing.T) {
	const early, late = 1100 * time.Second, 2100 * time.Second
	synctest.Test(t, func(t *testing.T) {
		used := make(chan uint64, 2)
		go func() {
			for _, sleep := range []time.Duration{early, late - early} {
				time.Sleep(sleep)
				used <- heap()
			}
		}()
		timeout := spec.Duration(3 * time.Second)
		run := virtual.Run(t, nil, func(w *spec.Spec) {
			w.Clients, w.Keys = 50, 3
			w.Hold, w.Think, w.Timeout = virtual.Dist(t, "exp:150ms"), virtual.Dist(t, "exp:150ms"), &timeout
			w.Duration = spec.Duration(late + time.Second)
		})
		if run.Speed.Acquisitions < 30_000 || run.Waiting.GaveUp < 1000 {
			t.Errorf("only %d acquisitions, %d given up", run.Speed.Acquisitions, run.Waiting.GaveUp)
		}
		// A byte for each acquisition of these thousand seconds would be as much.
		before, after := <-used, <-used
		t.Logf("%d bytes in use after %v, %d after %v", before, early, after, late)
		if after > before+16<<10 {
			t.Errorf("%d bytes in use after %v, %d after %v", before, early, after, late)
		}
	})
}

// heap is what is in use once the garbage is gone.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
