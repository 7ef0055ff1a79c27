package engine

import (
	"iter"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/lockbench/lockbench/workloads"
)

// arrivals hands out the intended starts of an open loop, in order. They are
// fixed by rate and seed alone: nothing that happens to one arrival moves the
// next, so that a stalled server cannot hide the load it kept waiting
// (coordinated omission; G. Tene, How NOT to Measure Latency).
type arrivals struct {
	mu    sync.Mutex
	next  float64 // ns of the run's clock
	pacer Pacer
	gap   func() float64 // from one to the next, in arrivals that are expected
	draws *rand.Rand     // a seed for each arrival
}

// newArrivals begins at an instant, before the window opens at another; nil for a
// closed loop.
func newArrivals(w workloads.Spec, begin, open int64, seed uint64) *arrivals {
	if w.Rate == 0 {
		return nil
	}
	return &arrivals{
		next:  float64(begin),
		pacer: newPacer(w, open),
		gap:   gaps(w.Arrivals, rand.New(rand.NewPCG(seed, 1<<63))),
		draws: rand.New(rand.NewPCG(seed, 3<<62)),
	}
}

// gaps draws those of a kind of arrivals. Their mean is 1.
func gaps(kind workloads.Arrivals, random *rand.Rand) func() float64 {
	if kind == workloads.ArrivalsPoisson {
		return random.ExpFloat64
	}
	return func() float64 { return 1 }
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
	a.next = min(a.pacer.Pace(due, a.gap()), never)
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
