package results

import (
	"math"
	"slices"
)

// ratios are what one strategy's figure was of another's in each round in which
// both have it, ascending. Runs of a round are neighbours in time, so that what
// disturbed the machine has hit both.
func ratios(s, base summary, figure func(Run) *float64) []float64 {
	var all []float64
	for _, run := range s.used {
		at := slices.IndexFunc(base.used, func(other Run) bool { return other.Round == run.Round })
		if at < 0 {
			continue
		}
		v, of := figure(run), figure(base.used[at])
		if v != nil && of != nil && *of > 0 {
			all = append(all, *v / *of)
		}
	}
	slices.Sort(all)
	return all
}

// confidence of an interval that should hold the true median.
const confidence = 0.95

// medianInterval is the narrowest pair of order statistics that holds the
// population's median with at least the wanted confidence, by the binomial
// distribution and whatever the shape of the data (W. R. Thompson, Ann. Math.
// Stat. 7, 1936); false below six values, where there is none of 95 %.
func medianInterval(ascending []float64) (low, high float64, ok bool) {
	n := len(ascending)
	tail, choose := 0.0, 1.0 // P(X < k) of X ~ Binomial(n, ½); n over k
	k := 0
	for ; k < n/2; k++ {
		next := tail + choose*math.Pow(0.5, float64(n))
		if 1-2*next < confidence {
			break
		}
		tail = next
		choose *= float64(n-k) / float64(k+1)
	}
	if k == 0 {
		return 0, 0, false
	}
	return ascending[k-1], ascending[n-k], true
}

// middle is the median of ascending values, of which there is at least one.
func middle(ascending []float64) float64 {
	n := len(ascending)
	if n%2 == 1 {
		return ascending[n/2]
	}
	return (ascending[n/2-1] + ascending[n/2]) / 2
}

// ratioColumns compare each strategy with the first at the same point, round by
// round; nil where there is nothing to compare.
func ratioColumns(r *Report, all []summary) []column {
	if r.Rounds < 2 {
		return nil
	}
	bases := map[string]summary{} // by point
	for _, s := range all {
		if _, known := bases[s.point]; !known {
			bases[s.point] = s
		}
	}
	if len(bases) == len(all) {
		return nil
	}
	ratio := func(figure func(Run) *float64) func(summary) string {
		return func(s summary) string {
			base := bases[s.point]
			if base.Name == s.Name {
				return "1"
			}
			all := ratios(s, base, figure)
			if len(all) == 0 {
				return unknown
			}
			low, high, ok := medianInterval(all)
			if !ok {
				low, high = all[0], all[len(all)-1]
			}
			return significant(middle(all)) + " (" + significant(low) + "–" + significant(high) + ")"
		}
	}
	wait := func(of func(Run) *Bound) func(Run) *float64 {
		return func(r Run) *float64 {
			if b := of(r); b != nil && !b.AtLeast {
				return exactly(b.NS)
			}
			return nil
		}
	}
	return []column{
		{"acq/s", false, ratio(func(r Run) *float64 { return exactly(r.Speed.PerSecond) })},
		{"wait p99\nper client", false, ratio(wait(func(r Run) *Bound { return r.Waiting.PerClient.P99 }))},
		{"commands\nper acq", false, ratio(func(r Run) *float64 {
			if r.Server.Window == nil {
				return nil
			}
			return r.Server.Window.PerAcquisition(r.Server.Window.Calls)
		})},
		{"Redis CPU\nper acq", false, ratio(func(r Run) *float64 { return r.Server.Window.CPUPerAcquisition() })},
	}
}
