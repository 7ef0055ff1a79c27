package engine

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// What the holders do before they release is no effect of a release.
func TestAHoldIsNoPartOfAHandoff(t *testing.T) {
	t.Parallel()
	const hold = time.Second
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	run := do(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Burst, w.Hold, w.Iterations = 3, workloads.Duration(time.Millisecond), workloads.Fixed(hold), 6
	}))
	if h := run.Herd; h == nil || h.Bursts == 0 || h.FirstHandoff.P50.NS > int64(hold)/2 || h.Drain.P50.NS > int64(hold)/2 {
		t.Errorf("holds of %v, and the next of them after each release: %+v", hold, h)
	}
}
