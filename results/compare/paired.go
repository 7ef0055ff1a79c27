package compare

import (
	"fmt"
	"math"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// Paired compares runs taken in turns: the first report of the base with the first of the head,
// and so on. It tests the log ratios of the pairs with Wilcoxon's signed-rank test, the
// primary metric of all strategies as one family of tests and all other metrics as another
// (Holm in each). So two equal builds are called different, in either direction, with a
// probability of at most twice alpha, and the head is called worse with at most alpha.
//
// It leaves out a pair if one run cannot be compared. It keeps a pair with lower bounds only, which
// may leave the verdict open: see test.
func Paired(base, head Side, rules Rules) (*Comparison, error) {
	c, strategies := begin(MethodPaired, base, head, rules)
	if len(strategies) == 0 {
		return nil, ErrNothingInCommon
	}
	pairs := min(len(base.Reports), len(head.Reports))
	var tests []*test
	for _, name := range strategies {
		for _, m := range rules.ordered() {
			if t := newPaired(m, rules, name, base.Reports[:pairs], head.Reports[:pairs]); t != nil {
				tests = append(tests, t)
			}
		}
	}
	c.testAll(strategies, tests)
	return c, nil
}

// newPaired collects the pairs; nil if no pair has the metric.
func newPaired(m Metric, rules Rules, strategy string, base, head []Report) *test {
	var before, after []results.Figure
	var least, most []float64
	open := 0
	for i := range base {
		b, h := base[i].session(m, strategy), head[i].session(m, strategy)
		if b == nil || h == nil {
			continue
		}
		before, after = append(before, *b), append(after, *h)
		low, high := logRatio(m, *b, *h)
		least, most = append(least, low), append(most, high)
		if b.AtLeast || h.AtLeast {
			open++
		}
	}
	if len(before) == 0 {
		return nil
	}
	t := &test{
		Result: *newResult(m, rules, before, after), strategy: strategy, open: open,
		possible: leastP(len(before)), needed: leastPairs,
		least: centered(least, rules.Alpha), most: centered(most, rules.Alpha),
	}
	t.few = func(tests int) string {
		return fmt.Sprintf("%s, at least %d are needed for %s", words.Count(len(before), "pair"), t.Needed, words.Count(tests, "test"))
	}
	t.findable = func(tests int) *float64 {
		worse := math.Log1p(t.Threshold)
		if t.Higher {
			worse = -math.Log1p(-t.Threshold)
		}
		found := detectable(least, rules.Alpha/float64(tests), worse)
		if t.Higher {
			found = -found
		}
		if math.IsInf(found, 0) {
			return nil
		}
		return new(math.Expm1(found))
	}
	return t
}

// logRatio returns the limits of the log ratio of the head to the base. They are equal if both
// values are known; a lower bound makes one of them infinite.
func logRatio(m Metric, base, head results.Figure) (least, most float64) {
	ratio := math.Log(Measurable(m, head.Value) / Measurable(m, base.Value))
	least, most = ratio, ratio
	if base.AtLeast {
		least = math.Inf(-1)
	}
	if head.AtLeast {
		most = math.Inf(1)
	}
	return least, most
}

// centered returns the result of the signed-rank test for log ratios.
func centered(ratios []float64, alpha float64) outcome {
	o := outcome{p: wilcoxon(ratios).P}
	o.change, o.low, o.high, o.bounded = center(ratios, alpha)
	return o
}

// leastPairs returns the number of pairs from which one of this many tests can be significant.
func leastPairs(tests int, alpha float64) int {
	pairs := 1
	for leastP(pairs)*float64(tests) > alpha {
		pairs++
	}
	return pairs
}
