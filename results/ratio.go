package results

import (
	"iter"
	"slices"
)

// Ratio is what one strategy's figure was of another's over the rounds that have
// both.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
	// Interval says that Low to High is the 95 % interval of the median, which takes
	// six rounds; else they are the smallest and the largest.
	Interval bool `json:"interval"`
	// AtLeast and AtMost say that all three are bounds of that kind, see Against.
	AtLeast bool `json:"at_least,omitempty"`
	AtMost  bool `json:"at_most,omitempty"`
}

// String is the ratio with its interval in brackets: 2.31 (2.1–2.6), ≥ 12.0 (≥ 9.1).
func (r Ratio) String() string {
	switch {
	case r.AtLeast:
		return "≥ " + significant(r.Median) + " (≥ " + significant(r.Low) + ")"
	case r.AtMost:
		return "≤ " + significant(r.Median) + " (≤ " + significant(r.High) + ")"
	}
	return significant(r.Median) + " (" + significant(r.Low) + "–" + significant(r.High) + ")"
}

// Ratio compares a metric with another strategy's round by round; nil where no
// round has both of them exactly.
func (s Summary) Ratio(base Summary, m Metric) *Ratio {
	return ratio(s.Used, base.Used, exactlyKnown(m))
}

// Against is Ratio where values may be lower bounds too, as the waits of clients that
// starve are: the ratio then is AtLeast or AtMost what it says. It is nil where nothing
// is known, as of a lower bound beside a lower bound.
func (s Summary) Against(base Summary, m Metric) *Ratio { return ratio(s.Used, base.Used, m.Of) }

// exactlyKnown is a metric's figure where it is not a lower bound.
func exactlyKnown(m Metric) func(Run) *Figure {
	return func(r Run) *Figure {
		if f := m.Of(r); f != nil && !f.AtLeast {
			return f
		}
		return nil
	}
}

func ratio(runs, base []Run, figure func(Run) *Figure) *Ratio {
	var all []float64
	var r Ratio
	for run, other := range pairs(runs, base) {
		v, of := figure(run), figure(other)
		if v == nil || of == nil || of.Value <= 0 {
			continue
		}
		all = append(all, v.Value/of.Value)
		r.AtLeast, r.AtMost = r.AtLeast || v.AtLeast, r.AtMost || of.AtLeast
	}
	if len(all) == 0 || r.AtLeast && r.AtMost {
		return nil
	}
	slices.Sort(all)
	r.Median, r.Rounds = Median(all), len(all)
	r.Low, r.High, r.Interval = interval(all)
	return &r
}

// pairs are the runs of two strategies in the same rounds. They are neighbours in
// time, so that what disturbed the machine has hit both.
func pairs(runs, base []Run) iter.Seq2[Run, Run] {
	return func(yield func(Run, Run) bool) {
		for _, run := range runs {
			at := slices.IndexFunc(base, func(other Run) bool { return other.Round == run.Round })
			if at >= 0 && !yield(run, base[at]) {
				return
			}
		}
	}
}
