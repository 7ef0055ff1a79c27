package results

import "fmt"

// samples are those that a distribution is made of, seen to their end or not.
func (d Distribution) samples() int64 { return d.Count + d.Censored }

// takes is how many observations a percentile takes for one at least to lie beyond it.
// Of fewer it is their maximum, whatever its name: p99 takes 100, p99.9 a thousand.
func takes(percentile float64) float64 { return 1 / (1 - percentile/100) }

// enough says whether a percentile of the distribution is more than its maximum.
func (d Distribution) enough(percentile float64) bool {
	const rounding = 1e-9
	return float64(d.samples()) >= takes(percentile)*(1-rounding)
}

// unfinished says how many of a distribution's durations had not ended.
func unfinished(of func(Run) Distribution) func([]Run) string {
	return func(runs []Run) string {
		var open int64
		for _, run := range runs {
			open += of(run).Censored
		}
		if open == 0 {
			return ""
		}
		return fmt.Sprintf("%s had not ended", Whole(float64(open)))
	}
}

// tooFew says that a percentile is of too few durations in one of the runs.
func tooFew(of func(Run) Distribution, percentile float64) func([]Run) string {
	return func(runs []Run) string {
		for _, run := range runs {
			if d := of(run); d.samples() > 0 && !d.enough(percentile) {
				return fmt.Sprintf("the longest of %d", d.samples())
			}
		}
		return ""
	}
}
