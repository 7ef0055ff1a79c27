package compare

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// ErrNothingInCommon means that no strategy was measured on both sides, so there is nothing to compare.
var ErrNothingInCommon = errors.New("base and head have no strategy in common")

// test compares one metric of one strategy under both builds. Its Result has no verdict until adjust has tested the
// whole family.
type test struct {
	Result
	strategy string
	// Where a sample has lower bounds, least is the estimate with the values that make head ÷ base smallest, and most is
	// the estimate with those that make it largest. The true change lies between least and most, because an estimate never
	// falls if a value of the head rises. Without lower bounds they are equal.
	least, most estimate
	paired      bool
	deviation   float64           // standard error of the log ratio of head to base, see detectable
	freedom     func(int) int     // degrees of freedom of deviation, by the number of pairs or of sessions per side
	drifts      bool              // the sides were not recorded in turns: the machine may have changed
	open        int               // sessions or pairs with only a lower bound
	possible    float64           // the smallest p with this number of sessions or pairs
	leastP      func(int) float64 // the smallest p, by the number of pairs or of sessions per side
}

// Unpaired compares two sets of sessions by their medians and Mann–Whitney's U test (golang.org/x/perf/benchmath). Each
// report is one session and counts once, with the median of its rounds, because the rounds are not independent: they
// share a server and the state of the machine. Unpaired forms the same families of tests as Paired. If the sides were
// not recorded in turns, every result is undecided, because the machine itself may have become faster or slower in
// between.
func Unpaired(base, head Side, rules Rules) (*Comparison, error) {
	base, again := base.distinct()
	head, andAgain := head.distinct()
	turns := inTurns(base, head)
	c, err := compare(MethodUnpaired, base, head, rules, func(m Metric, strategy string, base, head Side) *test {
		before, after := base.sessions(m, strategy), head.sessions(m, strategy)
		t := newTest(m, rules, strategy, before, after)
		if t == nil {
			return nil
		}
		t.least = unpaired(logs(m, before, true), logs(m, after, false), rules.Alpha)
		t.most = unpaired(logs(m, before, false), logs(m, after, true), rules.Alpha)
		t.open, t.drifts = t.Base.Bounds+t.Head.Bounds, !turns
		t.deviation = ofTwo(logs(m, before, false), logs(m, after, false))
		t.freedom = func(sessions int) int { return 2*sessions - 2 }
		t.possible = leastUnpaired(t.Base.N, t.Head.N)
		t.leastP = func(sessions int) float64 { return leastUnpaired(sessions, sessions) }
		return t
	})
	if err != nil {
		return nil, err
	}
	c.LeftOut = slices.Concat(c.LeftOut, again, andAgain)
	if !turns {
		c.Notes = append(c.Notes, results.SessionsApart.Remark())
	}
	return c, nil
}

// logs returns the logarithms of a side's figures. If large is set, a lower bound counts as infinite, otherwise as its
// value.
func logs(m Metric, figures []results.Figure, large bool) []float64 {
	var values []float64
	for _, f := range figures {
		value := math.Log(max(f.Value, m.Compared.Resolution))
		if f.AtLeast && large {
			value = math.Inf(1)
		}
		values = append(values, value)
	}
	return values
}

// Paired compares runs taken in turns: the first report of the base with the first of the head, and so on. It tests the
// log ratios of the pairs with Wilcoxon's signed-rank test. The tests form three families, and Holm's method adjusts
// the p-values within each: the primary metric of all strategies, the counts that decide on their own (see
// Rules.decides), also in runs with a single client, and all other metrics. If two builds are equal, each family finds
// a difference in either direction with a probability of at most alpha, and finds the head worse with a probability of
// at most alpha ÷ 2.
//
// Paired leaves out a pair if one of its runs cannot be compared. It keeps a pair in which a value is only a lower
// bound, although such a pair may leave the verdict open (see test).
func Paired(base, head Side, rules Rules) (*Comparison, error) {
	return compare(MethodPaired, base, head, rules, func(m Metric, strategy string, base, head Side) *test {
		var before, after []results.Figure
		var least, most []float64
		open := 0
		for i := range min(len(base.Reports), len(head.Reports)) {
			b, h := session(base.Reports[i], m, strategy), session(head.Reports[i], m, strategy)
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
		t := newTest(m, rules, strategy, before, after)
		if t == nil {
			return nil
		}
		t.least, t.most, t.paired = paired(least, rules.Alpha), paired(most, rules.Alpha), true
		t.deviation, t.freedom = ofPairs(least), func(pairs int) int { return pairs - 1 }
		t.open, t.possible, t.leastP = open, leastPaired(len(before)), leastPaired
		return t
	})
}

// values returns the number of pairs or, if the sessions are not paired, the total number of sessions on both sides.
// For t.open of these pairs or sessions, only a lower bound is known.
func (t *test) values() int {
	if t.paired {
		return t.Base.N
	}
	return t.Base.N + t.Head.N
}

// logRatio returns the limits between which the log of head ÷ base lies. They are equal if both values are exact. If
// base is a lower bound, least is −∞. If head is a lower bound, most is +∞.
func logRatio(m Metric, base, head results.Figure) (least, most float64) {
	ratio := math.Log(max(head.Value, m.Compared.Resolution) / max(base.Value, m.Compared.Resolution))
	least, most = ratio, ratio
	if base.AtLeast {
		least = math.Inf(-1)
	}
	if head.AtLeast {
		most = math.Inf(1)
	}
	return least, most
}

// newTest returns a test of a metric's two samples, which has no estimates yet. It returns nil if neither side has a
// value.
func newTest(m Metric, rules Rules, strategy string, base, head []results.Figure) *test {
	if len(base)+len(head) == 0 {
		return nil
	}
	return &test{strategy: strategy, Result: Result{
		Metric: m.Name, Label: m.Compared.Label, Unit: m.Unit, Higher: m.Better == results.Higher,
		Threshold: rules.Least(m), Base: newSample(base), Head: newSample(head), Verdict: Undecided,
	}}
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

// compare tests all metrics of the strategies that both sides have, in the families that Paired describes. make returns
// the test of one metric, or nil if there are no values. In runs of a single client, compare tests only the counts that
// decide on their own (see Rules.decides).
func compare(
	method string, base, head Side, rules Rules, make func(m Metric, strategy string, base, head Side) *test,
) (*Comparison, error) {
	c, strategies := begin(method, base, head, rules)
	if len(strategies) == 0 {
		return nil, ErrNothingInCommon
	}
	var primary, counts, others []*test
	for _, name := range strategies {
		for _, m := range Metrics() {
			t := make(m, name, base, head)
			switch {
			case t == nil:
			case m.Name == rules.Primary:
				primary = append(primary, t)
			case rules.decides(m.Name):
				counts = append(counts, t)
			default:
				others = append(others, t)
			}
		}
	}
	first, second := base.ofOneClient(), head.ofOneClient()
	c.LeftOut = slices.Concat(c.LeftOut, first.leftOut(), second.leftOut())
	c.Broken = append(c.Broken, second.broken()...)
	for _, name := range first.titles() {
		for _, m := range Metrics() {
			if t := make(m, name, first, second); t != nil && slices.Contains(counted, m.Name) {
				t.strategy += alone
				counts = append(counts, t)
			}
		}
		strategies = append(strategies, name+alone)
	}
	for _, family := range [][]*test{primary, counts, others} {
		adjust(family, rules.Alpha)
	}
	for _, name := range strategies {
		s := Strategy{Name: name, Alone: strings.HasSuffix(name, alone), Results: []Result{}}
		for _, t := range slices.Concat(primary, counts, others) {
			if t.strategy == name {
				s.Results = append(s.Results, t.Result)
			}
		}
		if len(s.Results) > 0 || !s.Alone {
			c.Strategies = append(c.Strategies, s)
		}
	}
	c.conclude()
	return c, nil
}

// alone is the suffix of a strategy's name that marks the results of its runs with a single client.
const alone = " alone"

// adjust applies Holm's method to a family of tests and sets their verdicts. With lower bounds a p-value is known only
// as a range. An adjusted p never falls if a p-value rises. So a result that is significant with the largest p of every
// test is certainly significant, and a result that is not significant even with the smallest p of every test is
// certainly not significant.
func adjust(family []*test, alpha float64) {
	var larger, smaller []float64
	for _, t := range family {
		larger, smaller = append(larger, max(t.least.p, t.most.p)), append(smaller, min(t.least.p, t.most.p))
	}
	surely, perhaps := holm(larger), holm(smaller)
	for i, t := range family {
		if t.possible < 1 {
			t.P, t.Adjusted = &larger[i], &surely[i]
		}
		t.conclude(len(family), alpha, perhaps[i])
	}
}

// conclude sets the verdict of a test. tests is the number of tests in its family. The adjusted p lies between perhaps
// and t.Adjusted. The result is undecided if the verdict depends on which of these two p-values, or which of the two
// estimates, is used.
func (t *test) conclude(tests int, alpha, perhaps float64) {
	if t.possible*float64(tests) > alpha && (t.Adjusted == nil || *t.Adjusted > alpha) {
		for t.Needed = 1; t.leastP(t.Needed)*float64(tests) > alpha; {
			t.Needed++
		}
		there, side := words.Count(t.Base.N, "pair"), ""
		if !t.paired {
			there, side = t.number(MethodUnpaired)+" sessions", " a side"
		}
		t.Warnings = append(t.Warnings,
			results.TooFewSessions.Remark(there, t.Needed, side, results.CountOf(tests, "test")))
		t.show()
		return
	}
	certain := t.shift(t.Threshold)
	if t.open == 0 && !t.drifts && t.possible*float64(tests) <= alpha {
		certain = t.detect(alpha / float64(tests))
	}
	t.Verdict = t.judge(t.least, *t.Adjusted, alpha)
	for _, o := range []estimate{t.least, t.most} {
		for _, p := range []float64{*t.Adjusted, perhaps} {
			if t.judge(o, p, alpha) != t.Verdict { // the verdict depends on values that are only lower bounds
				t.Verdict, t.P, t.Adjusted = Undecided, nil, nil
				t.Warnings = append(t.Warnings,
					results.BoundsOpen.Remark(t.open, t.values()))
				return
			}
		}
	}
	switch t.show(); {
	case t.drifts && t.Verdict != NoneFound:
		t.Verdict, t.Warnings = Undecided, append(t.Warnings, results.NotInTurns.Remark())
	case t.drifts:
		t.Verdict, t.Warnings = Undecided, append(t.Warnings, results.TurnsUnknown.Remark())
	case t.Verdict == NoneFound && t.Detectable == nil:
		t.Verdict, t.Warnings = Undecided, append(t.Warnings, results.BoundsUnknown.Remark())
	case t.Verdict == NoneFound && !t.Sensitive:
		t.scattered(results.NoneButNoisy, alpha/float64(tests))
	case t.paired && t.Verdict != NoneFound && certain > t.shift(t.Threshold) && math.Abs(t.least.change) < certain:
		t.scattered(results.DiffersButNoisy, alpha/float64(tests))
	}
}

// scattered makes the result undecided because its values scatter too much, and sets Needed to an estimate of how many
// pairs or sessions would be enough.
func (t *test) scattered(warning results.Code, alpha float64) {
	t.Verdict, t.Warnings = Undecided, append(t.Warnings, warning.Remark())
	t.Needed = enough(min(t.Base.N, t.Head.N), t.deviation, t.freedom, alpha, t.shift(t.Threshold))
}

// shift returns, as an absolute log ratio, a change for the worse by size, a share such as 0.05.
func (t *test) shift(size float64) float64 {
	if t.Higher { // worse is less
		return -math.Log1p(-size)
	}
	return math.Log1p(size)
}

// detect sets Detectable and Sensitive. It returns, as a log ratio, the smallest measured change that counts.
func (t *test) detect(alpha float64) (certain float64) {
	sign := 1.0
	if t.Higher {
		sign = -1
	}
	threshold := t.shift(t.Threshold)
	freedom := t.freedom(min(t.Base.N, t.Head.N))
	found, significant, certain := detectable(t.deviation, freedom, alpha, threshold)
	t.Detectable, t.Sensitive = new(math.Expm1(sign*found)), significant <= threshold
	return certain
}

// judge returns Better or Worse if p is significant and the change is above the threshold, otherwise NoneFound.
func (t *test) judge(o estimate, p, alpha float64) results.Verdict {
	if p > alpha || math.Abs(math.Expm1(o.change)) <= t.Threshold {
		return NoneFound
	}
	if (o.change > 0) == t.Higher {
		return Better
	}
	return Worse
}

// show sets those of Delta, Low and High that are known in spite of lower bounds. If least and most differ, Delta is
// the one nearer to 0.
func (t *test) show() {
	nearer := t.least.change
	if math.Abs(t.most.change) < math.Abs(nearer) {
		nearer = t.most.change
	}
	straddles := t.open > 0 && t.least.change < 0 && t.most.change > 0
	if t.Base.N == 0 || t.Head.N == 0 || math.IsInf(nearer, 0) || straddles {
		return
	}
	t.Delta = new(math.Expm1(nearer))
	if t.least.bounded && t.most.bounded && !math.IsInf(t.least.low, 0) && !math.IsInf(t.most.high, 0) {
		t.Low, t.High = new(math.Expm1(t.least.low)), new(math.Expm1(t.most.high))
	}
}
