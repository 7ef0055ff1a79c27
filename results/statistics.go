package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Median returns the middle value, or the mean of the middle two; NaN if there is none. The
// values may be in any order.
func Median(values []float64) float64 {
	ascending := slices.Sorted(slices.Values(values))
	if len(ascending) == 0 {
		return math.NaN()
	}
	low, high := ascending[(len(ascending)-1)/2], ascending[len(ascending)/2]
	if low == high || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return low/2 + high/2
	}
	return low + (high-low)/2
}

// MedianFigure returns the median of figures that may be lower bounds; nil if there are no figures. The median is exact
// if all figures up to the middle are exact: a lower bound above the middle stays above it, whatever its true value.
func MedianFigure(values []Figure) *Figure {
	if len(values) == 0 {
		return nil
	}
	ascending := slices.SortedFunc(slices.Values(values), byValue)
	middle := len(ascending) / 2
	m := Figure{Value: ascending[middle].Value}
	if len(ascending)%2 == 0 {
		m.Value = (ascending[middle-1].Value + m.Value) / 2
	}
	m.AtLeast = slices.ContainsFunc(ascending[:middle+1], func(f Figure) bool { return f.AtLeast })
	for _, f := range values {
		m.Digits = fewest(m.Digits, f.Digits)
	}
	return &m
}

func byValue(a, b Figure) int { return cmp.Compare(a.Value, b.Value) }

// usual is the default confidence of intervals. intervalRounds is the smallest number of rounds for which such an
// interval exists.
const (
	usual          = 0.95
	intervalRounds = 6
)

// interval returns the narrowest pair of order statistics that holds the population's median with at least this
// confidence, for any distribution (W. R. Thompson, Ann. Math. Stat. 7, 1936). A confidence of 95 % needs six values.
// If there are too few values, interval returns the smallest and the largest, and sure is false.
func interval(values []float64, confidence float64) (low, high float64, sure bool) {
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds) // sorted
	s := benchmath.AssumeNothing.Summary(sample, confidence)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return sample.Values[0], sample.Values[len(sample.Values)-1], false
	}
	return s.Lo, s.Hi, true
}

// FigureInterval returns an interval that holds the population's median with at least this confidence. The probability
// that the median lies below the interval is at most half of 1 − confidence, and so is the probability that it lies
// above. The ends are the k-th smallest and the k-th largest value. A lower bound counts as its value for the low end,
// and as infinite for the high end. sure is false if there are too few values (at 98 %, fewer than seven); then the
// ends are the smallest and the largest. values must not be empty.
func FigureInterval(values []Figure, confidence float64) (low, high Figure, sure bool) {
	ranks := make([]float64, len(values))
	for i := range ranks {
		ranks[i] = float64(i)
	}
	first, last, sure := interval(ranks, confidence)
	in := min(int(first), len(values)-1-int(last))
	ascending := slices.SortedFunc(slices.Values(values), byValue)
	low = ascending[in]
	slices.SortStableFunc(ascending, func(a, b Figure) int {
		switch {
		case a.AtLeast == b.AtLeast:
			return byValue(a, b)
		case a.AtLeast:
			return 1
		}
		return -1
	})
	return low, ascending[len(ascending)-1-in], sure
}

// Ratio is the ratio of two strategies' figures, over the rounds in which both are known.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
	// Interval means that Low and High are the ends of the 95 % interval of the median, which needs six rounds. If it is
	// false, they are the smallest and the largest ratio.
	Interval bool `json:"interval"`
	// AtLeast means that Median, Low and High are lower bounds, and AtMost that they are upper bounds (see
	// Summary.Against).
	AtLeast bool `json:"at_least,omitempty"`
	AtMost  bool `json:"at_most,omitempty"`
	Digits  int  `json:"digits,omitempty"` // as in Figure
}

// String writes the ratio and its interval: 2.31 (2.1–2.6), ≥ 12.0 (≥ 9.1). "~" marks a ratio of which fewer than three
// digits are known.
func (r Ratio) String() string {
	mark := ""
	if r.Digits > 0 {
		mark = "~"
	}
	write := func(x float64) string { return significant(x, fewest(usualDigits, r.Digits), nil) }
	switch {
	case r.AtLeast:
		return mark + "≥ " + write(r.Median) + " (≥ " + write(r.Low) + ")"
	case r.AtMost:
		return mark + "≤ " + write(r.Median) + " (≤ " + write(r.High) + ")"
	}
	return mark + write(r.Median) + " (" + write(r.Low) + "–" + write(r.High) + ")"
}

// ofRounds is like String, but for a ratio with too few rounds for an interval: it adds the number of rounds, as in
// 2.31 (2.1–2.6 of 4).
func (r Ratio) ofRounds() string {
	text := r.String()
	if r.Rounds == 1 {
		text, _, _ = strings.Cut(text, " (")
		return text + " (of 1)"
	}
	return fmt.Sprintf("%s of %d)", strings.TrimSuffix(text, ")"), r.Rounds)
}

// Against returns the ratio of a metric of s to that of base, computed round by round. If a value of s is a lower
// bound, such as a percentile of the waits of starved clients, the ratio is AtLeast. If a value of base is one, the
// ratio is AtMost. Against returns nil if no round has both values, or if both strategies have lower bounds.
func (s Summary) Against(base Summary, m Metric) *Ratio {
	var all []float64
	var r Ratio
	for _, run := range s.Used {
		// Only runs of the same round are compared, because they follow one another, so that a disturbance of the machine
		// affects both.
		at := slices.IndexFunc(base.Used, func(other Run) bool { return other.Round == run.Round })
		if at < 0 {
			continue
		}
		v, of := m.Of(run), m.Of(base.Used[at])
		if v == nil || of == nil || of.Value <= 0 {
			continue
		}
		all = append(all, v.Value/of.Value)
		r.AtLeast, r.AtMost = r.AtLeast || v.AtLeast, r.AtMost || of.AtLeast
		r.Digits = fewest(r.Digits, fewest(v.Digits, of.Digits))
	}
	if len(all) == 0 || r.AtLeast && r.AtMost {
		return nil
	}
	r.Median, r.Rounds = Median(all), len(all)
	r.Low, r.High, r.Interval = interval(all, usual)
	return &r
}
