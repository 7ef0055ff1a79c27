//go:build !race

package virtual_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/workloads"
)

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
		timeout := workloads.Duration(3 * time.Second)
		run := virtual.Run(t, nil, func(w *workloads.Spec) {
			w.Clients, w.Keys = 50, 3
			w.Hold, w.Think, w.Timeout = virtual.Dist(t, "exp:150ms"), virtual.Dist(t, "exp:150ms"), &timeout
			w.Duration = workloads.Duration(late + time.Second)
		})
		if run.Speed.Acquisitions < 30_000 || run.Waiting.TimedOut < 1000 {
			t.Errorf("only %d acquisitions, %d timed out", run.Speed.Acquisitions, run.Waiting.TimedOut)
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
