package results

import (
	"fmt"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Survival is Kaplan and Meier's product-limit estimate of the share of waits
// longer than t, from waits seen to their end and waits known only to be longer
// than what was seen of them (E. L. Kaplan, P. Meier, Nonparametric Estimation
// from Incomplete Observations, J. Am. Stat. Assoc. 53, 1958):
//
//	S(t) = Π over observed durations u ≤ t of (1 − ended(u) ÷ atRisk(u))
//
// At equal durations the ended ones come before the censored ones. Without
// censored ones it is the plain empirical distribution.
type Survival struct {
	steps   []step
	largest int64 // longest duration seen, ended or not
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

// newSurvival takes bins in ascending order of duration.
func newSurvival(ended, censored []bin) Survival {
	var s Survival
	var atRisk float64
	for _, b := range ended {
		atRisk += b.n
		s.largest = max(s.largest, b.ns)
	}
	for _, b := range censored {
		atRisk += b.n
		s.largest = max(s.largest, b.ns)
	}
	left := 1.0
	for _, e := range ended {
		for len(censored) > 0 && censored[0].ns < e.ns {
			atRisk -= censored[0].n
			censored = censored[1:]
		}
		left *= max(0, 1-e.n/atRisk)
		atRisk -= e.n
		s.steps = append(s.steps, step{e.ns, left})
	}
	return s
}

// Quantile is the smallest duration that a share q of the waits, from 0 to 1,
// does not exceed; a lower bound when that lies beyond what was observed; nil
// without any observation.
func (s Survival) Quantile(q float64) *Bound {
	if s.largest == 0 && len(s.steps) == 0 {
		return nil
	}
	const rounding = 1e-9 // of the products above
	i := sort.Search(len(s.steps), func(i int) bool { return s.steps[i].left <= 1-q+rounding })
	if i < len(s.steps) {
		return &Bound{NS: s.steps[i].ns}
	}
	return &Bound{NS: s.largest, AtLeast: true}
}

// Survival recomputes the estimate from the histograms, so that any percentile
// can be had. It is an error when they cannot be read, or there are none although
// durations were counted.
func (d Distribution) Survival() (Survival, error) {
	ended, censored, err := d.Histograms()
	if err != nil {
		return Survival{}, err
	}
	if ended == nil && censored == nil && d.Count+d.Censored > 0 {
		return Survival{}, fmt.Errorf("it has no histogram of its %d durations", d.Count+d.Censored)
	}
	return estimate(ended, censored, d.Max), nil
}

// estimate takes histograms, either of which may be nil.
func estimate(ended, censored *hdrhistogram.Histogram, longest *Bound) Survival {
	return newSurvival(bins(ended, longest), bins(censored, longest))
}

// bins lists a histogram's filled buckets by their upper edge, which may lie
// beyond the longest duration, which is known exactly.
func bins(h *hdrhistogram.Histogram, longest *Bound) []bin {
	if h == nil {
		return nil
	}
	var bins []bin
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			b := bin{bar.To, float64(bar.Count)}
			if longest != nil {
				b.ns = min(b.ns, longest.NS)
			}
			bins = append(bins, b)
		}
	}
	return bins
}
