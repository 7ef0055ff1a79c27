package engine

import (
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// arrivals hands out the intended starts of an open loop, in order. The starts depend only on the rate, the seed and
// the trace, so a delayed arrival does not delay the next one. Therefore a stalled server cannot hide the load that
// waits for it (coordinated omission; G. Tene, How NOT to Measure Latency).
type arrivals struct {
	mu     sync.Mutex
	next   float64                   // ns of the run's clock
	after  func(due float64) float64 // the arrival after due, in the same unit
	draws  *rand.Rand                // a seed for each arrival
	player *player                   // nil unless the arrivals come from a trace
}

// arrival is one intended start of an open loop. Its key and hold come from random numbers or from a trace.
type arrival struct {
	due    int64
	random *rand.Rand         // draws its key and hold, so that they do not depend on the client that takes it
	traced *workloads.Arrival // nil unless it comes from a trace
}

// newArrivals returns the arrivals of a run whose clients start at the instant begin and whose window opens at the
// instant open. It returns nil for a closed loop.
func newArrivals(w workloads.Spec, begin, open int64, seed uint64) *arrivals {
	if w.Rate == 0 {
		return nil
	}
	a := &arrivals{next: float64(begin), draws: rand.New(rand.NewPCG(seed, 3<<62))}
	if trace := w.Arrivals.Trace(); trace != nil {
		a.player = newPlayer(trace, w.Rate, begin, open)
		a.next = min(a.player.due(), never)
		a.after = func(float64) float64 { return a.player.advance() }
		return a
	}
	pacer, gap := newPacer(w, open), gaps(w.Arrivals, rand.New(rand.NewPCG(seed, 1<<63)))
	a.after = func(due float64) float64 { return pacer.pace(due, gap()) }
	return a
}

// gaps returns a function that draws the gaps between arrivals, in units of the mean gap. pacer converts them to time.
func gaps(kind workloads.Arrivals, random *rand.Rand) func() float64 {
	if kind == workloads.ArrivalsPoisson {
		return random.ExpFloat64
	}
	return func() float64 { return 1 }
}

// never is an instant after the end of any run. It fits into an int64.
const never = float64(math.MaxInt64 / 2)

// arrive returns the next arrival and removes it from the sequence, so that exactly one client serves each arrival.
func (a *arrivals) arrive() arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := arrival{random: rand.New(rand.NewPCG(a.draws.Uint64(), a.draws.Uint64()))}
	if a.player != nil {
		next.traced = a.player.arrival()
	}
	next.due = a.advance()
	return next
}

// take returns the next intended start and removes it from the sequence. Unlike arrive, it draws no key and no hold.
func (a *arrivals) take() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.advance()
}

func (a *arrivals) advance() int64 {
	due := a.next
	a.next = min(a.after(due), never)
	return int64(due)
}

// backlog yields the intended starts before end that no client took.
func (a *arrivals) backlog(end int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for int64(a.next) < end {
			if !yield(a.take()) {
				return
			}
		}
	}
}

// pacer is the arrival rate of an open loop over time: constant, or stages in each of which the rate changes linearly
// to the stage's target. During the warm-up the rate is the target of the first stage. After the last stage the rate
// stays at that stage's target.
type pacer struct {
	rate   float64 // initial rate, per second
	stages workloads.Stages
	open   float64 // when the first stage begins, ns
}

// newPacer returns the pacer of a workload whose window opens at the instant open.
func newPacer(w workloads.Spec, open int64) pacer {
	if len(w.Stages) == 0 {
		return pacer{rate: float64(w.Rate)}
	}
	return pacer{w.Stages[0].Target, w.Stages, float64(open)}
}

// pace returns the instant at which the number of arrivals expected since the instant at reaches arrivals. Instants are
// in nanoseconds of the run's clock. pace returns +Inf if the load ends earlier. Let Λ(t) be the integral of the rate:
// the expected number of arrivals up to the instant t. pace solves
//
//	Λ(next) = Λ(at) + arrivals
//
// for next. The area of a whole stage is (first rate + last rate) ÷ 2 × length. If arrivals is always 1, the starts are
// evenly spaced at the rate. If arrivals is drawn from an exponential distribution with mean 1, the starts are a
// Poisson process of that rate (E. Çinlar, Introduction to Stochastic Processes, 1975, §4.7).
func (p pacer) pace(at, arrivals float64) float64 {
	if len(p.stages) == 0 {
		return at + 1e9/p.rate*arrivals
	}
	return p.open + p.after(at-p.open, arrivals)
}

// after returns the instant at which the given number of arrivals has followed at, for a workload with stages. Instants
// are in nanoseconds since the window opened.
func (p pacer) after(at, arrivals float64) float64 {
	from, begin := p.rate, 0.0
	if at < 0 { // warm-up
		rate := from / 1e9
		if arrivals <= -at*rate {
			return at + arrivals/rate
		}
		arrivals -= -at * rate
		at = 0
	}
	for _, stage := range p.stages {
		length := float64(stage.Duration)
		if at < begin+length {
			slope := (stage.Target - from) / length / 1e9 // arrivals per ns²
			rate := from/1e9 + slope*(at-begin)
			left := begin + length - at
			expected := (rate + stage.Target/1e9) / 2 * left
			if arrivals <= expected {
				return at + elapse(rate, slope, arrivals)
			}
			arrivals -= expected
			at = begin + length
		}
		from, begin = stage.Target, begin+length
	}
	if from == 0 {
		return math.Inf(1)
	}
	return at + arrivals*1e9/from
}

// elapse returns the time t in which n arrivals are expected if the rate at the time x is r + s·x. n is the integral of
// the rate from 0 to t,
//
//	n = r·t + s·t²/2
//
// and so t = (√(r² + 2·s·n) − r) ÷ s. Multiplying numerator and denominator by √(r² + 2·s·n) + r gives t = 2·n ÷ (r +
// √(r² + 2·s·n)), which also holds for s = 0 and is numerically stable for small s.
func elapse(rate, slope, arrivals float64) float64 {
	if arrivals <= 0 {
		return 0
	}
	root := math.Sqrt(max(0, rate*rate+2*slope*arrivals))
	return 2 * arrivals / (rate + root)
}

// reach returns the earliest time, not before at, at which the stages require n or more clients. It returns false if
// there is none. Both times count from the opening of the window.
func reach(stages workloads.Stages, at time.Duration, n float64) (time.Duration, bool) {
	from, begin := stages[0].Target, time.Duration(0)
	for _, stage := range stages {
		length := time.Duration(stage.Duration)
		offset := max(at-begin, 0)
		if at < begin+length {
			slope := (stage.Target - from) / float64(length)
			switch level := from + slope*float64(offset); {
			case level >= n:
				return max(at, begin), true
			case stage.Target >= n:
				return begin + time.Duration(math.Ceil((n-from)/slope)), true
			}
		}
		from, begin = stage.Target, begin+length
	}
	return max(at, begin), from >= n
}

// player replays a trace in a loop. A pass of the trace begins exactly when the window opens, so the warm-up replays
// the end of the trace.
type player struct {
	trace *workloads.Trace
	scale float64 // by which the gaps are multiplied
	begun float64 // when this pass of the trace began, ns of the run's clock
	at    int     // index in the trace
}

// newPlayer returns a player that starts with the first arrival at or after begin.
func newPlayer(trace *workloads.Trace, rate workloads.Rate, begin, open int64) *player {
	p := &player{trace: trace, scale: float64(trace.Rate() / rate)}
	p.begun = float64(open) - math.Ceil(float64(open-begin)/p.length())*p.length()
	for p.due() < float64(begin) {
		p.advance()
	}
	return p
}

func (p *player) length() float64 { return float64(p.trace.Length) * p.scale }

func (p *player) arrival() *workloads.Arrival { return &p.trace.Arrivals[p.at] }

// due returns the intended start of the current arrival.
func (p *player) due() float64 { return p.begun + float64(p.arrival().At)*p.scale }

// advance moves to the next arrival and returns its intended start.
func (p *player) advance() float64 {
	if p.at++; p.at == len(p.trace.Arrivals) {
		p.at, p.begun = 0, p.begun+p.length()
	}
	return p.due()
}
