package compare

import (
	"fmt"
	"math"
	"slices"
)

// outcome is what a test tells of one metric when every value is known.
type outcome struct {
	change    float64 // log of head ÷ base, which may be infinite
	low, high float64 // what it lies between at 1 − alpha
	bounded   bool    // that there are low and high
	p         float64
}

// test is a metric of a strategy under both builds, before the verdict.
type test struct {
	Result
	strategy string
	// least and most are the outcomes when everything of which only a lower bound is
	// known is such that the head comes out as small, or as large, against the base as it
	// can. Whatever the values were, the truth lies between them, since both statistics
	// only grow with a value of the head. Without bounds they are the same.
	least, most outcome
	open        int     // sessions, or pairs, of which only a bound is known
	possible    float64 // the smallest p that so many can give
	needed      func(tests int, alpha float64) int
	few         func(tests int) string   // what is said where there are not so many
	findable    func(tests int) *float64 // see Result.Detectable; nil without pairs
}

// testAll tests the primary metric of all strategies as one family and everything else as
// another, and fills the comparison with the outcomes.
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

// adjust tests a family and gives its verdicts. What is significant is so with the larger
// p of every test, what is not with the smaller one: Holm's adjustment only grows with the
// p-values.
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

// conclude says what the test tells, being one of so many. Perhaps is the smallest p that
// the adjustment may come to.
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
	}
	t.show()
}

// judge is the verdict on an outcome that could have been found.
func (t *test) judge(o outcome, p, alpha float64) Verdict {
	if p > alpha || math.Abs(math.Expm1(o.change)) <= t.Threshold {
		return Same
	}
	if (o.change > 0) == t.Higher {
		return Better
	}
	return Worse
}

// leaveOpen is the verdict where it hangs on values of which only a bound is known.
func (t *test) leaveOpen() {
	t.Verdict, t.P, t.Adjusted = Undecided, nil, nil
	t.Warnings = append(t.Warnings, fmt.Sprintf("of %d of %d only lower bounds are known, and they leave the verdict open", t.open, max(t.Base.N, t.Head.N)))
}

// show gives the change and its interval, as far as they are known.
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
