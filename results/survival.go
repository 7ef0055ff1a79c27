package results

import (
	"math"
	"slices"
	"sort"
)

// Survival is an estimate of the share of durations longer than t. It consists of two estimates: one cannot be too
// high, the other cannot be too low. A quantile is known only if they agree.
//
// The estimates differ in how they treat waits that ended at their timeout. It is unknown when such a wait would have
// ended with a lease. A few waits do end with a lease after the timeout, but they do not represent those that the
// timeout ended. So one estimate assumes that the lease would have come at the timeout, and the other that it would
// never have come (C. F. Manski, Partial Identification of Probability Distributions, 2003, 2). For Waiting.PerClient
// the estimates also differ in the weight of waits that were not observed.
type Survival struct {
	low, high curve
	// starved holds the waits that lasted through the window (see Rest). If their weight is large enough, they give a
	// lower bound of a quantile (see through).
	starved Histogram
	weight  float64 // of all durations
}

// Estimate returns the Survival of observations whose longest duration is known.
func Estimate(o Observations, longest *Bound) Survival { return estimate(o, nil, longest) }

func estimate(o Observations, rest *Rest, longest *Bound) Survival {
	bins := func(h Histogram) Histogram { return upTo(h, longest) }
	ended, gaveUp, open, entered := bins(o.Ended), bins(o.GaveUp), bins(o.Open), bins(o.Entered)
	s := Survival{low: newCurve(ended.Plus(gaveUp), open, entered, 0)}
	s.high = s.low
	if rest == nil && len(gaveUp) == 0 {
		return s
	}
	never := gaveUp.TotalCount()
	if rest != nil {
		ended, open = ended.Plus(bins(rest.Histogram)), open.Plus(bins(rest.CensoredHistogram))
		never += rest.GaveUpHistogram.TotalCount()
		s.starved = bins(rest.StarvedHistogram)
	}
	s.weight = float64(ended.TotalCount() + open.TotalCount() + never)
	s.high = newCurve(ended, open, entered, never)
	return s
}

// agreement is the largest ratio of two estimates of a quantile at which their geometric mean
// is used.
const agreement = 1.05

// Quantile returns the smallest duration that a share q of the durations, from 0 to 1, does not exceed. It is a lower
// bound if the quantile is beyond the observed range, or if the two estimates disagree; nil without observations.
func (s Survival) Quantile(q float64) *Bound {
	low, high := s.low.quantile(q), s.high.quantile(q)
	starved := s.through(q)
	switch {
	case starved != nil:
		return &Bound{NS: Longest(low, starved).NS, AtLeast: true}
	case low == nil || low.AtLeast:
		return low
	case high == nil || high.AtLeast || math.Abs(math.Log(float64(high.NS)/float64(low.NS))) > math.Log(agreement):
		return &Bound{NS: low.NS, AtLeast: true}
	}
	return &Bound{NS: int64(math.Sqrt(float64(low.NS) * float64(high.NS)))}
}

// through returns the largest age that starved waits with more than a share 1−q of all weight have reached. It returns
// nil if all starved waits together have no more than that share.
func (s Survival) through(q float64) *Bound {
	const rounding = 1e-9
	left := (1 - q + rounding) * s.weight
	for _, b := range slices.Backward(s.starved) {
		if left -= float64(b.Count); left < 0 {
			return &Bound{NS: b.To, AtLeast: true}
		}
	}
	return nil
}

// curve is the product-limit estimate of Kaplan and Meier, from durations seen to their end and durations of which only
// a lower bound is known (E. L. Kaplan, P. Meier, Nonparametric Estimation from Incomplete Observations, J. Am. Stat.
// Assoc. 53, 1958):
//
//	S(t) = Π over ended durations u ≤ t of (1 − ended(u) ÷ atRisk(u))
//
// A duration that was under way when the observation began is at risk only from the age that it had then: an earlier
// end could not have been seen (delayed entry; J. P. Klein, M. L. Moeschberger, Survival Analysis, 2nd edition 2003,
// 4.6). If all durations at risk end before longer ones enter, the estimate would stay at 0; in that case one more
// duration counts as at risk. At equal durations, entries come before ends, and ends before open ones. Without open and
// entered durations the estimate is the empirical distribution.
//
// The curve ends at the age at which nearly all durations that would otherwise be at risk have been censored. Beyond
// that age, one or two durations would decide the estimate for all.
type curve struct {
	steps []step
	limit int64 // nothing is known beyond it, ns
}

type step struct {
	ns   int64
	left float64 // S just after ns
}

// leastAtRisk is the smallest ratio of the durations at risk to those that would be at risk without censoring. Below
// it, a curve ends.
const leastAtRisk = 0.05

// risk holds the weight of the durations at risk while newCurve processes them in ascending order.
type risk struct {
	all      float64 // still to be seen: at risk, or still to enter
	outside  float64 // of these, still to enter
	expected float64 // at risk if none had been censored
	open     Histogram
	entered  Histogram
}

// enter adds to those at risk the durations that entered at the age upTo or earlier.
func (r *risk) enter(upTo int64) {
	for len(r.entered) > 0 && r.entered[0].To <= upTo {
		n := float64(r.entered[0].Count)
		r.outside, r.expected, r.entered = r.outside-n, r.expected+n, r.entered[1:]
	}
}

// lose removes the open durations whose observed time is shorter than the parameter below. If too few durations are
// left at risk, it stops and returns the observed time of the duration that it removed last, and true.
func (r *risk) lose(below int64) (int64, bool) {
	for len(r.open) > 0 && r.open[0].To < below {
		at := r.open[0].To
		r.enter(at)
		r.all -= float64(r.open[0].Count)
		r.open = r.open[1:]
		if r.all-r.outside < leastAtRisk*r.expected {
			return at, true
		}
	}
	return 0, false
}

// newCurve returns the product-limit estimate. Each bin counts at its upper edge. never is the weight of durations that
// never end and are never censored.
func newCurve(ended, open, entered Histogram, never int64) curve {
	r := risk{
		all: float64(ended.TotalCount() + open.TotalCount() + never), outside: float64(entered.TotalCount()),
		open: open, entered: entered,
	}
	r.expected = r.all - r.outside
	var c curve
	for _, bins := range []Histogram{ended, open} {
		if n := len(bins); n > 0 {
			c.limit = max(c.limit, bins[n-1].To)
		}
	}
	last, left := c.limit, 1.0
	for _, e := range ended {
		if at, few := r.lose(e.To); few {
			c.limit = at
			return c
		}
		r.enter(e.To)
		n := float64(e.Count)
		atRisk := max(r.all-r.outside, n)
		if atRisk <= n && e.To < last { // a longer duration exists
			atRisk = n + 1
		}
		left *= 1 - n/atRisk
		r.expected *= 1 - n/atRisk
		r.all -= n
		c.steps = append(c.steps, step{e.To, left})
	}
	if at, few := r.lose(math.MaxInt64); few {
		c.limit = at
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

// upTo limits the upper edges of the bins to the longest duration, which is known exactly.
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
