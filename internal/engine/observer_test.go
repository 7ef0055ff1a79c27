package engine

import (
	"math"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/strategies"
)

// witness is an Observer that keeps everything.
type witness struct {
	mu                 sync.Mutex
	acquired           []Acquisition
	holding, releasing int
}

func (w *witness) Holding(int)   { w.note(func() { w.holding++ }) }
func (w *witness) Releasing(int) { w.note(func() { w.releasing++ }) }
func (w *witness) Acquired(a Acquisition) {
	w.note(func() { w.acquired = append(w.acquired, a) })
}

func (w *witness) note(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

func TestTheObserverSeesWhatIsReported(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	seen := &witness{}
	run := do(t, v, workload(nil), func(j *Job) { j.Observer = seen })
	var counted, waits float64
	for _, a := range seen.acquired {
		if a.Due > a.Asked || a.Asked > a.Granted || a.Granted > a.Released || a.Released > a.Done {
			t.Errorf("instants out of order: %+v", a)
		}
		if a.Counted {
			counted++
			waits += float64(a.Granted - a.Due)
		}
	}
	if got := float64(run.Speed.Acquisitions); got != counted || counted == 0 {
		t.Errorf("%v acquisitions reported, %v seen", got, counted)
	}
	if mean := waits / counted; math.Abs(mean-*run.Waiting.PerAcquisition.MeanNS) > 1 {
		t.Errorf("mean wait %v reported, %v seen", *run.Waiting.PerAcquisition.MeanNS, mean)
	}
	if all := len(seen.acquired); seen.holding != all || seen.releasing != all {
		t.Errorf("%d acquisitions, %d began to hold, %d began to release", all, seen.holding, seen.releasing)
	}
}
