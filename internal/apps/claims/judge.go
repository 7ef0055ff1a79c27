package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// What must keep a limit instead of every round: the worse end of the interval of the rounds' median, or
// that median.
const (
	byInterval = "interval"
	byMedian   = "median"
)

// confidence is that of the intervals: at most 1 % lies outside either end.
const confidence = 0.98

// judge returns the verdict on a claim from its runs.
func (c Claim) judge(runs map[string]*measured) Result {
	judged := Result{
		Name: c.Name(), Says: c.Says, About: c.About, Tests: c.Tests, Runs: []RunResult{}, Figures: []FigureResult{},
	}
	for _, run := range c.Runs {
		m := runs[run.Name]
		why, invalid := c.wrong(run, m)
		judged.Why = append(judged.Why, why...)
		result := RunResult{Name: run.Name, Command: c.Command(run), Invalid: invalid, Shown: m.shown(c.Shows)}
		judged.Runs = append(judged.Runs, result)
	}
	var outcomes []Outcome
	for _, e := range c.Expect {
		f := e.result(e.What, e.Figure, c.Rounds, runs)
		if e.Counter != nil {
			with := e.result(e.Counter.With, e.Counter.Figure, c.Rounds, runs)
			f.Counter = &CounterResult{FigureResult: with, AsItMust: opposite(f.Outcome, with.Outcome)}
		}
		outcomes = append(outcomes, f.Outcome)
		judged.Figures = append(judged.Figures, f)
	}
	judged.Verdict = conclude(outcomes)
	if len(judged.Why) > 0 {
		judged.Verdict = Inconclusive
	}
	if judged.Verdict == Qualified {
		judged.Qualified = c.Qualified
	}
	return judged
}

// wrong says why a run is inconclusive for this claim, and whether the reason is that figures cannot be
// trusted.
func (c Claim) wrong(run Run, m *measured) (all []string, invalid bool) {
	add := func(format string, args ...any) {
		if why := run.Name + ": " + fmt.Sprintf(format, args...); !slices.Contains(all, why) {
			all = append(all, why)
		}
	}
	if m == nil {
		add("it was not measured")
		return all, false
	}
	missing := m.lacks(c.operands(run, false), c.Rounds)
	if missing && m.err != nil {
		add("%s", oneLine(m.err.Error()))
	}
	if m.report == nil {
		return all, false
	}
	if missing {
		for _, left := range m.report.LeftOut {
			add("%s was left out: %s", left.Strategy, left.Why)
		}
	}
	used, _ := meant(c.operands(run, true), m.titles())
	for _, r := range m.report.Runs {
		if !used[r.Title()] {
			continue
		}
		for _, why := range r.Invalid {
			invalid = true
			add("%s is INVALID in round %d: %s", r.Title(), r.Round, why)
		}
	}
	return all, invalid
}

// result returns the result of an expectation for its figure, or for that of its counter-case.
func (e expectation) result(what Text, figure expression, rounds int, runs map[string]*measured) FigureResult {
	f := FigureResult{
		What: what, Figure: figure.Text, Unit: figure.unit, Values: make([]*results.Figure, rounds), Limits: e.Limits,
	}
	if slices.ContainsFunc(figure.operands, operand.best) {
		f.Best = make([]string, rounds)
	}
	for i := range f.Values {
		value, whose := figure.in(runs, i+1)
		if f.Values[i] = value; f.Best != nil && value != nil {
			f.Best[i] = whose
		}
	}
	e.settle(&f)
	return f
}

// settle sets the outcome from the values.
//
// It is held or contradicted if every round is. A limit for the opposite leaves a margin between the
// limits: values there make it partly, unless other values are on both sides. Everything else, such
// as an unknown value, is unclear.
func (e expectation) settle(f *FigureResult) {
	if e.By != "" {
		e.settleTogether(f)
		return
	}
	f.Outcome = Unclear
	values := known(f.Values)
	if len(values) == 0 || len(values) < len(f.Values) {
		return
	}
	if e.Total {
		values = []results.Figure{sum(values)}
	}
	var held, contradicted int
	for _, value := range values {
		inside, sure := e.is.Keeps(value)
		against := !inside
		if sure && against && e.Opposite != "" {
			against, sure = e.opposite.Keeps(value)
		}
		if !sure {
			return
		}
		if inside {
			held++
		}
		if against {
			contradicted++
		}
	}
	switch {
	case held > 0 && contradicted > 0:
	case held == len(values):
		f.Outcome = Held
	case contradicted == len(values):
		f.Outcome = Contradicted
	default:
		f.Outcome = Partly
	}
}

// settleTogether sets the outcome of all rounds together. It ignores unknown rounds; if too few remain, the
// outcome is unclear.
func (e expectation) settleTogether(f *FigureResult) {
	all := known(f.Values)
	if len(all) > 0 {
		f.Interval = &Interval{Median: *results.MedianFigure(all), Rounds: len(all)}
		sure := false
		if f.Interval.Low, f.Interval.High, sure = results.FigureInterval(all, confidence); sure {
			f.Interval.Confidence = confidence
		}
	}
	switch {
	case e.Is == "":
		f.Outcome = Reported
		return
	case f.Interval == nil || f.Interval.Confidence == 0:
		f.Outcome = Unclear
		return
	}
	decisive := f.Interval.High
	if e.By == byMedian {
		decisive = f.Interval.Median
	} else if strings.HasPrefix(e.is.Operator, ">") {
		decisive = f.Interval.Low
	}
	f.Outcome = Missed
	if kept, sure := e.is.Keeps(decisive); kept && sure {
		f.Outcome = Held
	}
}

// known returns the known values.
func known(values []*results.Figure) (all []results.Figure) {
	for _, v := range values {
		if v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// sum returns the sum of the values; a lower bound if one of them is.
func sum(values []results.Figure) (total results.Figure) {
	for _, v := range values {
		total.Value, total.AtLeast = total.Value+v.Value, total.AtLeast || v.AtLeast
	}
	return total
}

// conclude makes a verdict from the outcomes: confirmed if all held, refuted if all are contradicted or
// missed, inconclusive if one is unclear, and otherwise qualified. Reported figures do not count.
func conclude(outcomes []Outcome) Verdict {
	count := map[Outcome]int{}
	for _, o := range outcomes {
		count[o]++
	}
	switch all := len(outcomes) - count[Reported]; {
	case all == 0, count[Unclear] > 0:
		return Inconclusive
	case count[Held] == all:
		return Confirmed
	case count[Contradicted]+count[Missed] == all:
		return Refuted
	}
	return Qualified
}

// opposite says whether a figure and its counter-case are on different sides of the limit. If the figure is
// between the limits, the counter-case must be on either side.
func opposite(without, with Outcome) bool {
	against := func(o Outcome) bool { return o == Contradicted || o == Missed }
	switch {
	case without == Held:
		return against(with)
	case against(without):
		return with == Held
	}
	return without == Partly && (with == Held || against(with))
}
