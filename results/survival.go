package results

import (
	"math"
	"slices"
	"sort"
)

// Survival is an estimate of the share of durations longer than t. It may consist of two
// estimates, one too low and one too high (see Waiting.PerClient): then a quantile is known
// only if they agree.
type Survival struct {
	curve
	high *curve // nil if there is only one
}

// agreement is the largest ratio of two estimates of a quantile at which their geometric mean
// is used.
const agreement = 1.05

// Quantile returns the smallest duration that a share q of the durations, from 0 to 1, does
// not exceed. It is a lower bound if the quantile is beyond the observed range, or two
// estimates disagree; nil without observations.
func (s Survival) Quantile(q float64) *Bound {
	low := s.curve.quantile(q)
	if s.high == nil {
		return low
	}
	high := s.high.quantile(q)
	switch {
	case low == nil || high == nil:
		return low
	case low.AtLeast || high.AtLeast || float64(high.NS) > agreement*float64(low.NS):
		return &Bound{NS: low.NS, AtLeast: true}
	}
	return &Bound{NS: int64(math.Sqrt(float64(low.NS) * float64(high.NS)))}
}

// curve is the product-limit estimate of Kaplan and Meier, from durations seen to their end
// and durations of which only a lower bound is known (E. L. Kaplan, P. Meier, Nonparametric
// Estimation from Incomplete Observations, J. Am. Stat. Assoc. 53, 1958):
//
//	S(t) = Π over ended durations u ≤ t of (1 − ended(u) ÷ atRisk(u))
//
// A duration that was under way when the observation began is at risk only from the age that
// it had then: an earlier end could not have been seen (delayed entry; J. P. Klein, M. L.
// Moeschberger, Survival Analysis, 2nd edition 2003, 4.6). If all durations at risk end
// although longer ones entered later, the estimate would stay at 0; then one more counts as
// at risk. At equal durations, entries come before ends, and ends before censored ones.
// Without censored and entered durations it is the empirical distribution.
type curve struct {
	steps []step
	limit int64 // nothing is known beyond it, ns
}

type step struct {
	ns   int64
	left float64 // S just after ns
}

// newCurve takes the bins at their upper edges.
func newCurve(ended, censored, entered Histogram) curve {
	var c curve
	var all float64 // still to be seen: at risk, or still to enter
	var last int64  // end of those
	for _, bins := range []Histogram{ended, censored} {
		for _, b := range bins {
			all += float64(b.Count)
			last = max(last, b.To)
		}
	}
	var outside float64 // those of them that are still to enter
	for _, b := range entered {
		outside += float64(b.Count)
	}
	c.limit = last
	left := 1.0
	for _, e := range ended {
		for len(censored) > 0 && censored[0].To < e.To {
			all -= float64(censored[0].Count)
			censored = censored[1:]
		}
		for len(entered) > 0 && entered[0].To <= e.To {
			outside -= float64(entered[0].Count)
			entered = entered[1:]
		}
		n := float64(e.Count)
		atRisk := max(all-outside, n)
		if atRisk <= n && e.To < last { // a longer duration exists
			atRisk = n + 1
		}
		left *= 1 - n/atRisk
		all -= n
		c.steps = append(c.steps, step{e.To, left})
	}
	return c
}

func (c curve) quantile(q float64) *Bound {
	if c.limit == 0 && len(c.steps) == 0 {
		return nil
	}
	const rounding = 1e-9 // rounding errors of the products above
	i := sort.Search(len(c.steps), func(i int) bool { return c.steps[i].left <= 1-q+rounding })
	if i < len(c.steps) {
		return &Bound{NS: c.steps[i].ns}
	}
	return &Bound{NS: c.limit, AtLeast: true}
}

// Estimate returns the Survival of observations whose longest duration is known.
func Estimate(o Observations, longest *Bound) Survival { return Survival{curve: estimate(o, longest)} }

func estimate(o Observations, longest *Bound) curve {
	return newCurve(upTo(o.Ended, longest), upTo(o.Censored, longest), upTo(o.Entered, longest))
}

// upTo returns the bins with no edge above the longest duration, which is known exactly.
func upTo(h Histogram, longest *Bound) Histogram {
	if longest == nil {
		return h
	}
	h = slices.Clone(h)
	for i := range h {
		h[i].To = min(h[i].To, longest.NS)
	}
	return h
}

// Mean is the area under the curve, which is the mean of the durations in nanoseconds (J. P.
// Klein, M. L. Moeschberger, Survival Analysis, 2nd edition 2003, 4.5). If the longest was
// not seen to its end, it is the area up to there, a lower bound. Two estimates must agree
// as for a quantile, otherwise it is a lower bound. nil without observations.
func (s Survival) Mean() *Figure {
	low := s.curve.mean()
	if s.high == nil || low == nil {
		return low
	}
	high := s.high.mean()
	if low.AtLeast || high.AtLeast || high.Value > agreement*low.Value {
		return &Figure{Value: low.Value, AtLeast: true}
	}
	return &Figure{Value: math.Sqrt(low.Value * high.Value)}
}

func (c curve) mean() *Figure {
	if c.limit == 0 && len(c.steps) == 0 {
		return nil
	}
	mean, left, from := 0.0, 1.0, int64(0)
	for _, step := range c.steps {
		mean += left * float64(step.ns-from)
		left, from = step.left, step.ns
	}
	const rounding = 1e-9 // rounding errors of the products in the curve
	mean += left * float64(c.limit-from)
	return &Figure{Value: mean, AtLeast: left > rounding}
}
