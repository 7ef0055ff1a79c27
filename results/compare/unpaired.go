package compare

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/perf/benchmath"

	"github.com/lockbench/lockbench/results"
)

const (
	// leastToDetect is the number of runs a side from which the U test can find
	// anything at 5 %.
	leastToDetect = 4
	// leastToBound is the number of runs a side, or of pairs, from which an interval
	// is given.
	leastToBound = 6
)

// ErrNothingInCommon is returned where the two sides have no strategy in common.
var ErrNothingInCommon = errors.New("base and head have no strategy in common")

// Unpaired compares two sets of runs that were made one after the other: medians,
// Mann–Whitney's U test (golang.org/x/perf/benchmath), each metric at the full
// alpha.
func Unpaired(base, head Side, rules Rules) (*Comparison, error) {
	c, strategies := begin(MethodUnpaired, base, head, rules)
	if len(strategies) == 0 {
		return nil, ErrNothingInCommon
	}
	for _, name := range strategies {
		s := Strategy{Name: name}
		before, after := base.runs(name), head.runs(name)
		for _, m := range rules.ordered() {
			if r := newResult(m, rules, before, after); r != nil {
				r.testUnpaired(m, rules.Alpha)
				s.Results = append(s.Results, *r)
			}
		}
		c.Strategies = append(c.Strategies, s)
	}
	c.conclude()
	return c, nil
}

// ordered are the metrics, the primary one first.
func (r Rules) ordered() []Metric {
	var first, others []Metric
	for _, m := range Metrics() {
		if m.Name == r.Primary {
			first = append(first, m)
		} else {
			others = append(others, m)
		}
	}
	return append(first, others...)
}

// newResult is a metric's two samples; nil where neither side knows it.
func newResult(m Metric, rules Rules, base, head []results.Run) *Result {
	r := &Result{
		Metric: m.Name, Label: m.Label, Unit: m.Unit, Higher: m.Higher(), Threshold: rules.threshold(m),
		Base: sampleOf(m, base), Head: sampleOf(m, head), Verdict: NotEnough,
	}
	if r.Base.N == 0 && r.Head.N == 0 {
		return nil
	}
	return r
}

func sampleOf(m Metric, runs []results.Run) Sample {
	var values []results.Figure
	for _, run := range runs {
		if v := m.Of(run); v != nil {
			values = append(values, *v)
		}
	}
	return newSample(values)
}

func newSample(values []results.Figure) Sample {
	s := Sample{N: len(values), Values: []float64{}}
	for _, v := range values {
		s.Values = append(s.Values, v.Value)
		s.AtLeast = s.AtLeast || v.AtLeast
	}
	if s.N > 0 {
		s.Median = new(results.Median(s.Values))
	}
	return s
}

func (r *Result) testUnpaired(m Metric, alpha float64) {
	if r.Base.N < leastToDetect || r.Head.N < leastToDetect {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d and %d runs, at least %d a side are needed", r.Base.N, r.Head.N, leastToDetect))
		return
	}
	if r.Base.AtLeast || r.Head.AtLeast {
		r.Warnings = append(r.Warnings, "some values are lower bounds, taken as they are")
	}
	thresholds := benchmath.Thresholds{CompareAlpha: alpha}
	first := benchmath.NewSample(each(r.Base.Values, m.measurable), &thresholds)
	second := benchmath.NewSample(each(r.Head.Values, m.measurable), &thresholds)
	tested := benchmath.AssumeNothing.Compare(first, second)
	r.P, r.Adjusted = new(tested.P), new(tested.P)
	r.Delta = new(m.measurable(*r.Head.Median)/m.measurable(*r.Base.Median) - 1)
	if r.Base.N >= leastToBound && r.Head.N >= leastToBound {
		if low, high, ok := shift(each(first.Values, math.Log), each(second.Values, math.Log), alpha); ok {
			r.Low, r.High = new(math.Expm1(low)), new(math.Expm1(high))
		}
	}
	r.Verdict = r.judge(alpha)
}

func each(values []float64, f func(float64) float64) []float64 {
	var mapped []float64
	for _, v := range values {
		mapped = append(mapped, f(v))
	}
	return mapped
}
