package workloads

import (
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockbench/lockbench/workloads/spec"
)

// arrivals hands out the intended starts of an open loop, in order. They are
// fixed by rate and seed alone: nothing that happens to one arrival moves the
// next, so that a stalled server cannot hide the load it kept waiting
// (coordinated omission; G. Tene, How NOT to Measure Latency).
type arrivals struct {
	mu     sync.Mutex
	next   int64   // ns of the run's clock
	gap    float64 // ns, mean
	rest   float64 // of the gap, below a nanosecond
	random *rand.Rand
}

// newArrivals begins at an instant; nil for a closed loop.
func newArrivals(w spec.Spec, begin int64, seed uint64) *arrivals {
	if w.Rate == 0 {
		return nil
	}
	a := &arrivals{next: begin, gap: float64(time.Second) / float64(w.Rate)}
	if w.Arrivals == spec.ArrivalsPoisson {
		a.random = rand.New(rand.NewPCG(seed, 1<<63))
	}
	return a
}

// take is the next intended start.
func (a *arrivals) take() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	due := a.next
	gap := a.gap
	if a.random != nil {
		gap *= a.random.ExpFloat64()
	}
	gap += a.rest
	a.next += int64(gap)
	a.rest = gap - float64(int64(gap))
	return due
}

// backlog yields the arrivals due before an instant that nobody has taken.
func (a *arrivals) backlog(end int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for a.next < end {
			if !yield(a.take()) {
				return
			}
		}
	}
}
