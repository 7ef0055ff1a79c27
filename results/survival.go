package results

import (
	"math"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Survival is an estimate of the share of durations longer than t. Where it is
// made of two, of which one is too low and the other too high (see
// Waiting.PerClient), a quantile is known where they agree.
type Survival struct {
	curve
	high *curve // nil where there is one only
}

// agreement is by how much two estimates of a quantile may differ for their
// geometric mean to be taken for it.
const agreement = 1.05

// Quantile is the smallest duration that a share q of them, from 0 to 1, does not
// exceed; a lower bound where that lies beyond what was observed, or where two
// estimates disagree; nil without any observation.
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

// curve is Kaplan and Meier's product-limit estimate, from durations seen to
// their end and durations known only to be longer than what was seen of them
// (E. L. Kaplan, P. Meier, Nonparametric Estimation from Incomplete Observations,
// J. Am. Stat. Assoc. 53, 1958):
//
//	S(t) = Π over ended durations u ≤ t of (1 − ended(u) ÷ atRisk(u))
//
// A duration that was under way when the looking began is at risk only from the
// age on that it had then, since it could not have been seen ending earlier
// (delayed entry; J. P. Klein, M. L. Moeschberger, Survival Analysis, 2nd edition
// 2003, 4.6). Where all that are at risk end although longer durations entered
// later, the estimate would be 0 from there on; one more is taken to be at risk.
// At equal durations entries come before ends, and these before the censored.
// Without censored and entered ones it is the plain empirical distribution.
type curve struct {
	steps []step
	limit int64 // nothing is known beyond it, ns
}

type step struct {
	ns   int64
	left float64 // S just after ns
}

// bin is a number of observations of about one duration.
type bin struct {
	ns int64
	n  float64
}

// newCurve takes bins in ascending order of duration.
func newCurve(ended, censored, entered []bin) curve {
	var c curve
	var all float64 // that are still to be seen: at risk, or to enter
	var last int64  // end of those
	for _, bins := range [][]bin{ended, censored} {
		for _, b := range bins {
			all += b.n
			last = max(last, b.ns)
		}
	}
	var outside float64 // of them, still to enter
	for _, b := range entered {
		outside += b.n
	}
	c.limit = last
	left := 1.0
	for _, e := range ended {
		for len(censored) > 0 && censored[0].ns < e.ns {
			all -= censored[0].n
			censored = censored[1:]
		}
		for len(entered) > 0 && entered[0].ns <= e.ns {
			outside -= entered[0].n
			entered = entered[1:]
		}
		atRisk := max(all-outside, e.n)
		if atRisk <= e.n && e.ns < last { // somebody has become older
			atRisk = e.n + 1
		}
		left *= 1 - e.n/atRisk
		all -= e.n
		c.steps = append(c.steps, step{e.ns, left})
	}
	return c
}

func (c curve) quantile(q float64) *Bound {
	if c.limit == 0 && len(c.steps) == 0 {
		return nil
	}
	const rounding = 1e-9 // of the products above
	i := sort.Search(len(c.steps), func(i int) bool { return c.steps[i].left <= 1-q+rounding })
	if i < len(c.steps) {
		return &Bound{NS: c.steps[i].ns}
	}
	return &Bound{NS: c.limit, AtLeast: true}
}

// Survival recomputes the estimate from the histograms, so that any percentile
// can be had. It is an error when they cannot be read, or there are none although
// durations were counted.
func (d Distribution) Survival() (Survival, error) { return PoolSurvival([]Distribution{d}) }

// Estimate is the Survival of observations, of which the longest is known.
func Estimate(o Observations, longest *Bound) Survival { return Survival{curve: estimate(o, longest)} }

func estimate(o Observations, longest *Bound) curve {
	return newCurve(bins(o.Ended, longest), bins(o.Censored, longest), bins(o.Entered, longest))
}

// bins lists a histogram's filled buckets by their upper edge, which may lie
// beyond the longest duration, which is known exactly.
func bins(h *hdrhistogram.Histogram, longest *Bound) []bin {
	if h == nil {
		return nil
	}
	var bins []bin
	for to, n := range filled(h) {
		if longest != nil {
			to = min(to, longest.NS)
		}
		bins = append(bins, bin{to, float64(n)})
	}
	return bins
}
