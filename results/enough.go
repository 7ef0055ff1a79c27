package results

import "fmt"

// samples is the number of durations, seen to their end or not.
func (d Distribution) samples() int64 { return d.Count + d.Censored }

// takes is the least number of observations with one beyond the percentile. With fewer the
// percentile is the maximum: p99 needs 100, p99.9 needs 1000.
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

// tooFew says that a percentile is the maximum because one of the runs had too few durations.
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
