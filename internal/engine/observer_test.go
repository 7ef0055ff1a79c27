package engine

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

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

func TestObserverMatchesReport(t *testing.T) {
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

// The engine calls Watch once a second with the results so far and the open waits. The final counts must not be lower
// than those of the last call.
func TestWatchShowsRunSoFar(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	var seen []results.Run
	var waiting [][]results.Wait
	w := workload(func(w *workloads.Spec) {
		// With this warm-up, the engine calls Watch half a millisecond after the end of a turn. At the same instant, the
		// order of the two events would be undefined.
		w.Warmup, w.Duration = workloads.Duration(20500*time.Microsecond), workloads.Duration(4500*time.Millisecond)
	})
	run := do(t, v, w, func(j *Job) {
		j.Watch = func(r results.Run, waits []results.Wait) {
			seen, waiting = append(seen, r), append(waiting, waits)
		}
	})
	if len(seen) != 5 { // at 0, 1, 2, 3 and 4 s
		t.Fatalf("it was seen %d times", len(seen))
	}
	for i, r := range seen {
		granted := r.Speed.Acquisitions
		if want := int64(i * 1000); granted < want-1 || granted > want+1 || r.WindowNS != int64(i)*1e9 || !r.Partial {
			t.Errorf("after %d s: %d acquisitions of 1 ms in %d ns", i, granted, r.WindowNS)
		}
		if waits := r.Waiting.PerAcquisition.Count; waits != granted || r.Speed.Handoff.Count > granted ||
			r.Fairness.PerClient.TotalCount() != 8 || len(r.Timeline) != i {
			t.Errorf("after %d s: %d acquisitions, %d waits, %d handoffs, %d clients, %d slices", i, granted, waits,
				r.Speed.Handoff.Count, r.Fairness.PerClient.TotalCount(), len(r.Timeline))
		}
		clients := map[int]bool{}
		for _, one := range waiting[i] {
			clients[one.Client] = one.NS <= int64(9*time.Millisecond)
		}
		if len(clients) < 6 || len(clients) != len(waiting[i]) {
			t.Errorf("after %d s there wait %v", i, waiting[i])
		}
	}
	if last := seen[4]; run.Speed.Acquisitions < last.Speed.Acquisitions+499 || run.Partial ||
		run.Speed.Hold.Count < last.Speed.Hold.Count || run.Fairness.PerClient.TotalCount() != 8 {
		t.Errorf("at the end %+v", run.Speed)
	}
	for _, s := range run.Timeline {
		if s.HandoffP50 == nil || s.HandoffP99 == nil {
			t.Errorf("no handoff in the second from %v on", s.At)
		}
	}
}

// Watch is called while one client holds the lock and seven wait. The figures must include this hold and these waits up
// to the time of the call.
func TestRunUnderWayIncludesOpenWaits(t *testing.T) {
	t.Parallel()
	v := lock(t, strategies.Info{Capacity: 1, Claims: strategies.Claims{Exclusion: true}}, 1, wait)
	w := workload(func(w *workloads.Spec) {
		w.Hold, w.Warmup = workloads.Fixed(700*time.Millisecond), workloads.Duration(400*time.Millisecond)
		w.Duration = workloads.Duration(3500 * time.Millisecond)
	})
	var seen []results.Run
	do(t, v, w, func(j *Job) { j.Watch = func(r results.Run, _ []results.Wait) { seen = append(seen, r) } })
	for _, r := range seen {
		window := time.Duration(r.WindowNS)
		if held := r.Speed.Utilisation; window > 0 && (held < 0.99 || held > 1.001) {
			t.Errorf("after %v the lock was held for %.1f %% of the time", window, held*100)
		}
		none := int64(0) // clients without an acquisition, with the holder, whose lease may be older than the window
		for _, bin := range r.Fairness.PerClient {
			if bin.To == 0 {
				none += bin.Count
			}
		}
		if waiting := r.Record.WithoutTurn; waiting == nil || *waiting > none || *waiting < none-1 {
			t.Errorf("after %v %d clients have no acquisition, and of those that wait %v", window, none, waiting)
		}
		if p := r.Waiting.PerAcquisition.P99; p == nil || !p.AtLeast || r.Waiting.Open != 7 {
			t.Errorf("after %v with 7 clients waiting the p99 of the waits is %v, %d open", window, p, r.Waiting.Open)
		}
	}
	if len(seen) < 3 {
		t.Errorf("seen %d times", len(seen))
	}
}
