package selfcheck

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockbench/lockbench/internal/engine"
)

// prediction compares a queue's recorded waits with those that its starts, holds and handoffs predict. All
// times are nanoseconds.
type prediction struct {
	customers int
	recorded  float64 // sum of the waits
	predicted float64 // sum of the predicted waits
	occupied  float64 // sum of holds and handoffs
	span      float64 // first start → last release
	overtook  int     // customers granted before one that had started earlier
}

// off returns |ΣW − ΣŴ| ÷ ΣŴ in percent.
func (p prediction) off() float64 { return math.Abs(p.recorded-p.predicted) / p.predicted * 100 }

// load returns the share of the time in which the lock was held or handed over, in percent: the utilisation of
// queueing theory.
func (p prediction) load() float64 { return p.occupied / p.span * 100 }

// service returns how long a customer occupied the lock, on average, in seconds.
func (p prediction) service() float64 { return p.occupied / float64(p.customers) / 1e9 }

// lindley predicts the waits of one key's customers from the start and the hold of each, and the length of each
// handoff (D. V. Lindley, The theory of queues with a single server, Math. Proc. Camb. Phil. Soc. 48,
// 1952). In the order of the grants, a customer that starts while its predecessor holds gets the lock
// when the predecessor's predicted hold ends and the handoff is over:
//
//	W(n+1) = max(0, W(n) + S(n) + H(n+1) − (A(n+1) − A(n)))
//
// A customer that starts when the lock is free gets it after the measured time of its acquire. If prediction
// and record disagree on whether the lock was free, there is no such measurement. Then lindley uses the
// average of such customers, because the recursion must not follow a wrong record.
func lindley(acquired []engine.Acquisition) prediction {
	ordered := slices.Clone(acquired)
	slices.SortFunc(ordered, func(a, b engine.Acquisition) int { return cmp.Compare(a.Granted, b.Granted) })
	p := prediction{customers: len(ordered)}
	if len(ordered) == 0 {
		return p
	}
	unhindered, handoff := means(ordered)

	var free float64 // predicted end of the predecessor's hold
	latest := ordered[0].Asked
	for i, a := range ordered {
		asked, queued := float64(a.Asked), a.Handoff >= 0
		overhead, granted := unhindered, 0.0
		if i > 0 && asked < free {
			overhead = handoff
			if queued {
				overhead = float64(a.Handoff)
			}
			granted = free + overhead
		} else {
			if !queued {
				overhead = float64(a.Granted - a.Asked)
			}
			granted = asked + overhead
		}
		hold := float64(a.Released - a.Granted)
		free = granted + hold

		p.predicted += granted - asked
		p.recorded += float64(a.Granted - a.Asked)
		p.occupied += hold + overhead
		if a.Asked < latest {
			p.overtook++
		}
		latest = max(latest, a.Asked)
	}
	p.span = float64(ordered[len(ordered)-1].Released - ordered[0].Asked)
	return p
}

// means returns the mean time of an acquire that found the lock free, and of the handoffs.
func means(acquired []engine.Acquisition) (unhindered, handoff float64) {
	var free, handed float64
	for _, a := range acquired {
		if a.Handoff >= 0 {
			handoff += float64(a.Handoff)
			handed++
		} else {
			unhindered += float64(a.Granted - a.Asked)
			free++
		}
	}
	return unhindered / max(1, free), handoff / max(1, handed)
}
