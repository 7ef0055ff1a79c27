package results

import (
	"fmt"
	"strings"
)

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
		return fmt.Sprintf("%s had not ended", count(open))
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

// p99 is what tables show of a 99th percentile: nothing where it would be no more than
// the maximum.
func p99(of func(Run) Distribution) func(Run) *Bound {
	return func(r Run) *Bound {
		if d := of(r); d.enough(99) {
			return d.P99
		}
		return nil
	}
}

// fewNotes say of whose 99th percentiles tables have none for want of durations, and how
// many there were.
func (p *page) fewNotes(all []summary) {
	for _, s := range all {
		var few []string
		for _, of := range []struct {
			what string
			d    func(Run) Distribution
		}{
			{"handoffs", func(r Run) Distribution { return r.Speed.Handoff }},
			{"waits", func(r Run) Distribution { return r.Waiting.PerAcquisition }},
		} {
			for _, run := range s.used {
				if d := of.d(run); d.samples() > 0 && !d.enough(99) {
					few = append(few, fmt.Sprintf("%d %s", d.samples(), of.what))
					break
				}
			}
		}
		if len(few) > 0 {
			p.entry("too few", "%s: %s in a run, and a p99 of less than %.0f is their maximum", s.title(), strings.Join(few, ", "), takes(99))
		}
	}
}
