package measure

import (
	"math"
	"sort"

	"github.com/lockbench/lockbench/results"
)

// bin is a number of observations of about one duration; weights make it a
// fraction.
type bin struct {
	ns int64
	n  float64
}

// survival is Kaplan and Meier's product-limit estimate of the share of waits
// longer than t, from waits seen to their end and waits known only to be longer
// than what was seen of them (E. L. Kaplan, P. Meier, Nonparametric Estimation
// from Incomplete Observations, J. Am. Stat. Assoc. 53, 1958):
//
//	S(t) = Π over observed durations u ≤ t of (1 − ended(u) ÷ atRisk(u))
//
// At equal durations the ended ones come before the censored ones. Without
// censored ones it is the plain empirical distribution.
type survival struct {
	steps   []step
	largest int64 // longest duration seen, ended or not
}

type step struct {
	ns   int64
	left float64 // S just after ns
}

// newSurvival takes bins in ascending order of duration.
func newSurvival(ended, censored []bin) survival {
	var s survival
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

// quantile is the smallest duration that a share q of the waits does not
// exceed; a lower bound when that lies beyond what was observed; nil without
// any observation.
func (s survival) quantile(q float64) *results.Bound {
	if s.largest == 0 && len(s.steps) == 0 {
		return nil
	}
	const rounding = 1e-9 // of the products above
	i := sort.Search(len(s.steps), func(i int) bool { return s.steps[i].left <= 1-q+rounding })
	if i < len(s.steps) {
		return &results.Bound{NS: s.steps[i].ns}
	}
	return &results.Bound{NS: s.largest, AtLeast: true}
}

// distribution fills in the percentiles.
func (s survival) distribution(ended, censored float64) results.Distribution {
	return results.Distribution{
		Count:    int64(math.Round(ended)),
		Censored: int64(math.Round(censored)),
		P50:      s.quantile(0.50),
		P90:      s.quantile(0.90),
		P95:      s.quantile(0.95),
		P99:      s.quantile(0.99),
		P999:     s.quantile(0.999),
	}
}
