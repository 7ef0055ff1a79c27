package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// Paired compares runs taken in turns: the first report of the base with the first
// of the head, and so on. The log ratios of the pairs are tested with Wilcoxon's
// signed-rank test, the primary metric of all strategies as one family of tests and
// everything else as another (Holm in each), so that two equal builds are told
// apart, in either direction, with a probability of at most twice alpha, and the
// head is called worse with at most alpha.
//
// A pair of which one run cannot be compared is left out.
func Paired(base, head Side, rules Rules) (*Comparison, error) {
	c, strategies := begin(MethodPaired, base, head, rules)
	if len(strategies) == 0 {
		return nil, ErrNothingInCommon
	}
	pairs := min(len(base.Reports), len(head.Reports))
	var primary, others []*test
	for _, name := range strategies {
		before, after := base.rounds(name, pairs), head.rounds(name, pairs)
		for _, m := range rules.ordered() {
			t := newTest(m, rules, name, before, after)
			switch {
			case t == nil:
			case m.Name == rules.Primary:
				primary = append(primary, t)
			default:
				others = append(others, t)
			}
		}
	}
	for _, family := range [][]*test{primary, others} {
		adjust(family, rules.Alpha)
	}
	for _, name := range strategies {
		s := Strategy{Name: name, Results: []Result{}}
		for _, t := range append(slices.Clone(primary), others...) {
			if t.strategy == name {
				s.Results = append(s.Results, t.Result)
			}
		}
		c.Strategies = append(c.Strategies, s)
	}
	c.conclude()
	return c, nil
}

// test is a metric of a strategy and its pairs.
type test struct {
	Result
	strategy string
	ratios   []float64 // logs of head ÷ base, pair by pair
}

// rounds are the usable runs of a strategy in each of the first reports.
func (s Side) rounds(strategy string, reports int) [][]results.Run {
	var rounds [][]results.Run
	for _, report := range s.Reports[:reports] {
		rounds = append(rounds, Side{Reports: []Report{report}}.runs(strategy))
	}
	return rounds
}

// newTest collects the pairs; nil where the metric is in none.
func newTest(m Metric, rules Rules, strategy string, base, head [][]results.Run) *test {
	var before, after []results.Figure
	var ratios []float64
	for i := range base {
		b, h := medianValue(m, base[i]), medianValue(m, head[i])
		if b != nil && h != nil {
			before, after = append(before, *b), append(after, *h)
			ratios = append(ratios, logRatio(m, *b, *h))
		}
	}
	if len(ratios) == 0 {
		return nil
	}
	return &test{
		Result: Result{
			Metric: m.Name, Label: m.Label, Unit: m.Unit, Higher: m.Higher(), Threshold: rules.threshold(m),
			Base: newSample(before), Head: newSample(after),
		},
		strategy: strategy, ratios: ratios,
	}
}

// medianValue is that of a report's runs, of which there is usually one.
func medianValue(m Metric, runs []results.Run) *results.Figure {
	s := sampleOf(m, runs)
	if s.Median == nil {
		return nil
	}
	return &results.Figure{Value: *s.Median, AtLeast: s.AtLeast}
}

// logRatio is that of the head to the base, 0 where lower bounds leave open which
// of the two is larger.
func logRatio(m Metric, base, head results.Figure) float64 {
	ratio := math.Log(m.measurable(head.Value) / m.measurable(base.Value))
	undecided := base.AtLeast && (head.AtLeast || ratio > 0) || head.AtLeast && ratio < 0
	if undecided {
		return 0
	}
	return ratio
}

// adjust tests a family and gives its verdicts.
func adjust(family []*test, alpha float64) {
	var ps []float64
	for _, t := range family {
		p := wilcoxon(t.ratios).P
		t.P = &p
		ps = append(ps, p)
	}
	for i, adjusted := range holm(ps) {
		family[i].Adjusted = &adjusted
		family[i].conclude(len(family), alpha)
	}
}

// conclude says what the pairs tell, being one of so many tests.
func (t *test) conclude(tests int, alpha float64) {
	estimate, low, high, bounded := center(t.ratios, alpha)
	t.Delta = new(math.Expm1(estimate))
	if bounded {
		t.Low, t.High = new(math.Expm1(low)), new(math.Expm1(high))
	}
	if leastP(len(t.ratios))*float64(tests) > alpha && *t.Adjusted > alpha {
		t.Verdict = NotEnough
		t.Warnings = append(t.Warnings, fmt.Sprintf("%d pairs, at least %d are needed for %d tests", len(t.ratios), leastPairs(tests, alpha), tests))
		return
	}
	t.Verdict = t.judge(alpha)
	worse := math.Log1p(t.Threshold)
	if t.Higher {
		worse = -math.Log1p(-t.Threshold)
	}
	if least := detectable(t.ratios, alpha/float64(tests), worse); !math.IsInf(least, 0) {
		if t.Higher {
			least = -least
		}
		t.Detectable = new(math.Expm1(least))
	}
}

// leastPairs is the number from which one of so many tests can be significant.
func leastPairs(tests int, alpha float64) int {
	pairs := 1
	for leastP(pairs)*float64(tests) > alpha {
		pairs++
	}
	return pairs
}
