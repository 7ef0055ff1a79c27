package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

const (
	// leastToDetect is the number of sessions per side from which the U test can be significant at
	// 5 %.
	leastToDetect = 4
	// leastToBound is the number of sessions per side, or of pairs, from which there is an interval.
	leastToBound = 6
)

// ErrNothingInCommon is returned if the two sides have no strategy in common.
var ErrNothingInCommon = errors.New("base and head have no strategy in common")

// Unpaired compares two sets of sessions: medians and Mann–Whitney's U test
// (golang.org/x/perf/benchmath). A session, which is a report, counts once with the median of
// its rounds, because its rounds are not independent: they share a server and an hour. The
// families of tests are those of Paired. If the sides were not recorded in turns, it calls no
// change: the speed of one machine now and half an hour ago are not independent either.
func Unpaired(base, head Side, rules Rules) (*Comparison, error) {
	base, again := base.distinct()
	head, andAgain := head.distinct()
	c, strategies := begin(MethodUnpaired, base, head, rules)
	if len(strategies) == 0 {
		return nil, ErrNothingInCommon
	}
	c.LeftOut = append(c.LeftOut, append(again, andAgain...)...)
	turns := inTurns(base, head)
	if !turns {
		c.Notes = append(c.Notes, "the sessions were not recorded in turns: what changed on the machine in between would count "+
			"as a change, so none is called; ab takes turns")
	}
	var tests []*test
	for _, name := range strategies {
		for _, m := range rules.ordered() {
			before, after := base.sessions(m, name), head.sessions(m, name)
			if r := newResult(m, rules, before, after); r != nil {
				t := newUnpaired(m, *r, name, before, after, rules.Alpha)
				t.drifts = !turns
				tests = append(tests, t)
			}
		}
	}
	c.testAll(strategies, tests)
	return c, nil
}

// ordered returns the metrics, the primary one first.
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

// newResult returns a metric's two samples; nil if neither side has it.
func newResult(m Metric, rules Rules, base, head []results.Figure) *Result {
	if len(base)+len(head) == 0 {
		return nil
	}
	return &Result{
		Metric: m.Name, Label: m.Compared.Label, Unit: m.Unit, Higher: m.Better == results.Higher, Threshold: rules.Least(m),
		Base: newSample(base), Head: newSample(head), Verdict: Undecided,
	}
}

func newSample(values []results.Figure) Sample {
	s := Sample{N: len(values), Values: []float64{}}
	for _, v := range values {
		s.Values = append(s.Values, v.Value)
		if v.AtLeast {
			s.Bounds++
		}
	}
	if median := results.MedianFigure(values); median != nil {
		s.Median, s.AtLeast = &median.Value, median.AtLeast
	}
	return s
}

func newUnpaired(m Metric, r Result, strategy string, base, head []results.Figure, alpha float64) *test {
	t := &test{Result: r, strategy: strategy, open: r.Base.Bounds + r.Head.Bounds, possible: 1, needed: leastSessions}
	t.few = func(tests int) string {
		return fmt.Sprintf("%d and %d sessions, at least %d a side are needed for %s", len(base), len(head), t.Needed, words.Count(tests, "test"))
	}
	t.least = shifted(values(m, base, true), values(m, head, false), alpha)
	t.most = shifted(values(m, base, false), values(m, head, true), alpha)
	if len(base) >= leastToDetect && len(head) >= leastToDetect {
		t.possible = leastU(len(base), len(head))
	}
	return t
}

// values returns the logarithms of a side's figures. A lower bound counts as infinite if large,
// else as its value.
func values(m Metric, figures []results.Figure, large bool) []float64 {
	var logs []float64
	for _, f := range figures {
		if f.AtLeast && large {
			logs = append(logs, math.Inf(1))
		} else {
			logs = append(logs, math.Log(Measurable(m, f.Value)))
		}
	}
	return logs
}

// shifted returns the result of the U test for two samples of logarithms; below leastToDetect
// sessions per side, only the difference of their medians.
func shifted(base, head []float64, alpha float64) outcome {
	o := outcome{change: results.Median(head) - results.Median(base), p: 1}
	if len(base) < leastToDetect || len(head) < leastToDetect {
		return o
	}
	thresholds := benchmath.Thresholds{CompareAlpha: alpha}
	o.p = benchmath.AssumeNothing.Compare(benchmath.NewSample(slices.Clone(base), &thresholds), benchmath.NewSample(slices.Clone(head), &thresholds)).P
	if len(base) >= leastToBound && len(head) >= leastToBound {
		o.low, o.high, o.bounded = shift(base, head, alpha)
	}
	return o
}

// leastU returns the smallest p that the U test can give for samples of these sizes: 2 ÷ the number
// of ways to choose the first sample.
func leastU(first, second int) float64 {
	ways := 1.0
	for i := 1; i <= first; i++ {
		ways *= float64(second+i) / float64(i)
	}
	return 2 / ways
}

// leastSessions returns the sessions per side from which one of this many tests can be significant.
func leastSessions(tests int, alpha float64) int {
	sessions := leastToDetect
	for leastU(sessions, sessions)*float64(tests) > alpha {
		sessions++
	}
	return sessions
}
