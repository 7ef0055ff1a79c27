package compare

import (
	"fmt"
	"math"
	"slices"
)

// outcome is the result of a test for one metric if every value is known.
type outcome struct {
	change    float64 // log of head ÷ base, which may be infinite
	low, high float64 // interval of change at 1 − alpha
	bounded   bool    // low and high are set
	p         float64
}

// test is a metric of a strategy under both builds, before the verdict.
type test struct {
	Result
	strategy string
	// least and most are the outcomes if each value with only a lower bound is chosen so that the
	// head is as small, or as large, against the base as possible. The true outcome lies between
	// them, since both statistics only grow with a value of the head. Without bounds they are
	// equal.
	least, most outcome
	drifts      bool    // the sides were not recorded in turns: a change may be the machine's
	open        int     // sessions or pairs with a bound only
	possible    float64 // the smallest p with this number of sessions or pairs
	needed      func(tests int, alpha float64) int
	few         func(tests int) string   // the warning if there are fewer than needed
	findable    func(tests int) *float64 // see Result.Detectable; nil without pairs
}

// notInTurns is the warning of a difference that is not called one.
const notInTurns = "it differs, but the sessions were not recorded in turns: that may be the machine's doing"

// testAll tests the primary metric of all strategies as one family and all other metrics as
// another, and adds the results to the comparison.
func (c *Comparison) testAll(strategies []string, tests []*test) {
	var primary, others []*test
	for _, t := range tests {
		if t.Metric == c.Rules.Primary {
			primary = append(primary, t)
		} else {
			others = append(others, t)
		}
	}
	for _, family := range [][]*test{primary, others} {
		adjust(family, c.Rules.Alpha)
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
}

// adjust tests a family and sets its verdicts. A result is surely significant if it is so with
// the larger p of every test, and surely not if it is not with the smaller ones: Holm's
// adjustment only grows with the p-values.
func adjust(family []*test, alpha float64) {
	var larger, smaller []float64
	for _, t := range family {
		larger, smaller = append(larger, max(t.least.p, t.most.p)), append(smaller, min(t.least.p, t.most.p))
	}
	surely, perhaps := holm(larger), holm(smaller)
	for i, t := range family {
		t.P, t.Adjusted = &larger[i], &surely[i]
		t.conclude(len(family), alpha, perhaps[i])
	}
}

// conclude sets the verdict of a test in a family of this many tests. perhaps is the smallest
// possible adjusted p.
func (t *test) conclude(tests int, alpha, perhaps float64) {
	if t.possible >= 1 {
		t.P, t.Adjusted = nil, nil
	}
	if t.possible*float64(tests) > alpha && (t.Adjusted == nil || *t.Adjusted > alpha) {
		t.Verdict, t.Needed = Undecided, t.needed(tests, alpha)
		t.Warnings = append(t.Warnings, t.few(tests))
	} else {
		if t.findable != nil && t.open == 0 {
			t.Detectable = t.findable(tests)
		}
		t.Verdict = t.judge(t.least, *t.Adjusted, alpha)
		for _, o := range []outcome{t.least, t.most} {
			for _, p := range []float64{*t.Adjusted, perhaps} {
				if t.judge(o, p, alpha) != t.Verdict {
					t.leaveOpen()
					return
				}
			}
		}
		if t.drifts && t.Verdict != Same {
			t.Verdict = Undecided
			t.Warnings = append(t.Warnings, notInTurns)
		}
	}
	t.show()
}

// judge returns the verdict on an outcome.
func (t *test) judge(o outcome, p, alpha float64) Verdict {
	if p > alpha || math.Abs(math.Expm1(o.change)) <= t.Threshold {
		return Same
	}
	if (o.change > 0) == t.Higher {
		return Better
	}
	return Worse
}

// leaveOpen sets the verdict if it depends on values that are only bounds.
func (t *test) leaveOpen() {
	t.Verdict, t.P, t.Adjusted = Undecided, nil, nil
	t.Warnings = append(t.Warnings, fmt.Sprintf("of %d of %d only lower bounds are known, and they leave the verdict open", t.open, max(t.Base.N, t.Head.N)))
}

// show sets the change and its interval, as far as they are known.
func (t *test) show() {
	nearer := t.least.change
	if math.Abs(t.most.change) < math.Abs(nearer) {
		nearer = t.most.change
	}
	if t.Base.N == 0 || t.Head.N == 0 || math.IsInf(nearer, 0) || t.least.change < 0 && t.most.change > 0 && t.open > 0 {
		return
	}
	t.Delta = new(math.Expm1(nearer))
	if t.least.bounded && t.most.bounded && !math.IsInf(t.least.low, 0) && !math.IsInf(t.most.high, 0) {
		t.Low, t.High = new(math.Expm1(t.least.low)), new(math.Expm1(t.most.high))
	}
}

// holm adjusts the p-values of a family of tests. If those of at most alpha are rejected, the
// probability of any wrong rejection is at most alpha (Holm, Scandinavian Journal of
// Statistics 6, 1979). It keeps the order.
func holm(ps []float64) []float64 {
	adjusted := make([]float64, len(ps))
	largest := 0.0
	for rank, i := range ascending(ps) {
		largest = max(largest, min(1, ps[i]*float64(len(ps)-rank)))
		adjusted[i] = largest
	}
	return adjusted
}
