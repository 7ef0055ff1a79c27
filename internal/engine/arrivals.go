package engine

import (
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// arrivals hands out the intended starts of an open loop, in order. They are
// fixed by rate and seed alone: nothing that happens to one arrival moves the
// next, so that a stalled server cannot hide the load it kept waiting
// (coordinated omission; G. Tene, How NOT to Measure Latency).
type arrivals struct {
	mu     sync.Mutex
	next   float64 // ns of the run's clock
	pace   func(at, arrivals float64) float64
	random *rand.Rand // nil for constant arrivals
	draws  *rand.Rand // a seed for each arrival
}

// newArrivals begins at an instant, before the window opens at another; nil for a
// closed loop.
func newArrivals(w workloads.Spec, begin, open int64, seed uint64) *arrivals {
	if w.Rate == 0 {
		return nil
	}
	a := &arrivals{next: float64(begin), draws: rand.New(rand.NewPCG(seed, 3<<62))}
	if w.Arrivals == workloads.ArrivalsPoisson {
		a.random = rand.New(rand.NewPCG(seed, 1<<63))
	}
	gap := float64(time.Second) / float64(w.Rate)
	a.pace = func(at, arrivals float64) float64 { return at + gap*arrivals }
	if len(w.Stages) > 0 {
		a.pace = func(at, arrivals float64) float64 {
			return float64(open) + w.Stages.After(at-float64(open), arrivals)
		}
	}
	return a
}

// never is after the end of any run, and still an instant.
const never = float64(math.MaxInt64 / 2)

// arrive is the next intended start, and what its key and hold are drawn from: they
// are the arrival's own, whoever takes it, so that every strategy is given the same
// ones.
func (a *arrivals) arrive() (int64, *rand.Rand) {
	a.mu.Lock()
	defer a.mu.Unlock()
	random := rand.New(rand.NewPCG(a.draws.Uint64(), a.draws.Uint64()))
	return a.advance(), random
}

// take is the next intended start alone.
func (a *arrivals) take() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.advance()
}

func (a *arrivals) advance() int64 {
	due := a.next
	arrivals := 1.0
	if a.random != nil {
		arrivals = a.random.ExpFloat64()
	}
	a.next = min(a.pace(a.next, arrivals), never)
	return int64(due)
}

// backlog yields the arrivals due before an instant that nobody has taken.
func (a *arrivals) backlog(end int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for int64(a.next) < end {
			if !yield(a.take()) {
				return
			}
		}
	}
}
