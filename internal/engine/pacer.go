package engine

import (
	"math"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Pacer is the shape of an open loop's load. Let Λ(t) be the integral of its rate: the
// expected number of arrivals up to the instant t. Pace solves
//
//	Λ(next) = Λ(at) + arrivals
//
// for next. If arrivals is always 1 the starts follow the rate evenly. If arrivals are
// exponential draws of mean 1 the starts are a Poisson process of that rate (E. Çinlar,
// Introduction to Stochastic Processes, 1975, §4.7).
type Pacer interface {
	// Pace returns the instant before which this many more arrivals are expected than before
	// the instant at, in nanoseconds of the run's clock; +Inf if there will be fewer.
	Pace(at, arrivals float64) (next float64)
}

// PacerFunc is a function as a Pacer.
type PacerFunc func(at, arrivals float64) (next float64)

// Pace calls the function.
func (f PacerFunc) Pace(at, arrivals float64) float64 { return f(at, arrivals) }

var (
	_ Pacer = PacerFunc(nil)
	_ Pacer = ratePacer(0)
	_ Pacer = stagePacer{}
)

// newPacer returns the Pacer of a workload whose window opens at an instant.
func newPacer(w workloads.Spec, open int64) Pacer {
	if len(w.Stages) > 0 {
		return stagePacer{w.Stages, float64(open)}
	}
	return ratePacer(w.Rate)
}

// ratePacer keeps one rate: Λ(t) = rate·t, so that next = at + arrivals ÷ rate.
type ratePacer workloads.Rate

// Pace implements Pacer.
func (r ratePacer) Pace(at, arrivals float64) float64 {
	gap := float64(time.Second) / float64(r)
	return at + gap*arrivals
}

// stagePacer changes the rate linearly from one stage's target to the next one's. The
// first stage's target is also the rate of the warm-up; the last one's remains to the end.
type stagePacer struct {
	stages workloads.Stages
	open   float64 // when the first stage begins, ns
}

// Pace subtracts the expected arrivals stage by stage: (first rate + last rate) ÷ 2 ×
// length for each stage.
func (p stagePacer) Pace(at, arrivals float64) float64 {
	return p.open + p.after(at-p.open, arrivals)
}

// after is Pace in nanoseconds since the window opened.
func (p stagePacer) after(at, arrivals float64) float64 {
	from, begin := p.stages[0].Target, 0.0
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
			slope := (stage.Target - from) / length / 1e9 // per ns, per ns
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

// elapse is the time t in which n arrivals are expected if the rate is r + s·x after
// the time x. n is the integral of the rate from 0 to t,
//
//	n = r·t + s·t²/2
//
// and so t = (√(r² + 2·s·n) − r) ÷ s. An expansion by √(r² + 2·s·n) + r gives
// t = 2·n ÷ (r + √(r² + 2·s·n)), which also holds for s = 0 and is exact for small s.
func elapse(rate, slope, arrivals float64) float64 {
	if arrivals <= 0 {
		return 0
	}
	root := math.Sqrt(max(0, rate*rate+2*slope*arrivals))
	return 2 * arrivals / (rate + root)
}
