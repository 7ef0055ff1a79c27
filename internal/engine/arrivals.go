package engine

import (
	"iter"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/lockbench/lockbench/workloads"
)

// arrivals hands out the intended starts of an open loop, in order. Only the rate and
// the seed determine them: a delay of one arrival does not move the next. So a stalled
// server cannot hide the load that waits for it (coordinated omission; G. Tene, How NOT
// to Measure Latency).
type arrivals struct {
	mu    sync.Mutex
	next  float64 // ns of the run's clock
	pacer Pacer
	gap   func() float64 // until the next arrival, as a number of expected arrivals
	draws *rand.Rand     // a seed for each arrival
}

// newArrivals returns the arrivals from begin on; the window opens at open. It returns nil
// for a closed loop.
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

// gaps returns a function that draws gaps between arrivals. Their mean is 1.
func gaps(kind workloads.Arrivals, random *rand.Rand) func() float64 {
	if kind == workloads.ArrivalsPoisson {
		return random.ExpFloat64
	}
	return func() float64 { return 1 }
}

// never is an instant after the end of any run; an int64 can hold it.
const never = float64(math.MaxInt64 / 2)

// arrive returns the next intended start and a random source for its key and hold. The
// source belongs to the arrival, not to the client that takes it, so every strategy gets
// the same keys and holds.
func (a *arrivals) arrive() (int64, *rand.Rand) {
	a.mu.Lock()
	defer a.mu.Unlock()
	random := rand.New(rand.NewPCG(a.draws.Uint64(), a.draws.Uint64()))
	return a.advance(), random
}

// take returns only the next intended start.
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

// backlog yields the arrivals that were due before end and that no client took.
func (a *arrivals) backlog(end int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for int64(a.next) < end {
			if !yield(a.take()) {
				return
			}
		}
	}
}
