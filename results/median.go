package results

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Median is the middle one of the values, in any order, or the mean of the middle
// two; NaN of none.
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

// MedianFigure is the median of what may be lower bounds only; nil of none. It is
// exact when everything up to the middle is: what lies above can then only move
// further up.
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

// usual is the confidence of intervals unless another is asked for.
const usual = 0.95

// interval is the narrowest pair of order statistics that holds the population's
// median with at least this confidence, whatever the shape of the data (W. R.
// Thompson, Ann. Math. Stat. 7, 1936). With 95 % that takes six values; of fewer it is
// the smallest and the largest, and not sure.
func interval(values []float64, confidence float64) (low, high float64, sure bool) {
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds) // sorted
	s := benchmath.AssumeNothing.Summary(sample, confidence)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return sample.Values[0], sample.Values[len(sample.Values)-1], false
	}
	return s.Lo, s.Hi, true
}

// FigureInterval is between what the population's median lies with at least this
// confidence, and beyond either end with at most half of the rest: the values as far in
// from the smallest as from the largest. Of lower bounds, the low end takes each as it
// stands, and the high end as endless. sure is false where there are too few values, at
// 98 % fewer than seven: then it is the smallest and the largest. There is at least one.
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
