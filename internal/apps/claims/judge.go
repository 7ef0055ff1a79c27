package claims

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// This file judges claims. judge combines the verdicts on all figures into the verdict on the claim. settle and
// settleTogether judge one figure. The second half parses expressions and evaluates them in a round.
//
// A value that is not known is never guessed. Without By, it makes the figure unclear and the claim inconclusive, which
// is neither for nor against the claim. With By, the round is left out, and the interval needs enough other rounds.

// The values of Limits.By, which selects what must satisfy the limit:
//   - byInterval: the worse end of the interval around the median of the rounds
//   - byMedian: the median of the rounds
//   - "": the value of each round
const (
	byInterval = "interval"
	byMedian   = "median"
)

// confidence is the probability with which an interval contains the true median. The median is beyond each end with a
// probability of at most 1 %.
const confidence = 0.98

// judge judges a claim by its runs. If there is any reason not to trust a run, the claim is inconclusive, whatever the
// figures are.
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
	var outcomes []results.Verdict
	for _, e := range c.Expect {
		f := e.result(e.What, e.Figure, c.Rounds, runs)
		if e.Counter != nil {
			with := e.result(e.Counter.With, e.Counter.Figure, c.Rounds, runs)
			f.Counter = &CounterResult{FigureResult: with, AsItMust: opposite(f.Verdict, with.Verdict)}
		}
		outcomes = append(outcomes, f.Verdict)
		judged.Figures = append(judged.Figures, f)
	}
	// An untrusted run overrules the figures. The document keeps the figures, so that a reader can see what was measured.
	judged.Verdict = conclude(outcomes)
	if len(judged.Why) > 0 {
		judged.Verdict = Inconclusive
	}
	if judged.Verdict == Qualified {
		judged.Qualified = c.Qualified
	}
	return judged
}

// wrong returns the reasons why a run makes the claim inconclusive. invalid is true if one of these reasons is an
// invalid run of a strategy.
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
	used, _ := resolveTitles(c.operands(run, true), m.titles())
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

// result evaluates a figure and returns its verdict. figure is the figure of the expectation or of its counter-case.
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

// settle sets the verdict of a figure.
//
// The figure is held if each round satisfies Is, and contradicted if each round satisfies Opposite (without Opposite:
// if no round satisfies Is). It is partly held if some values are between the two limits, unless there are values on
// both sides of them. In all other cases, such as an unknown value, the figure is unclear.
func (e expectation) settle(f *FigureResult) {
	if e.By != "" {
		e.settleTogether(f)
		return
	}
	f.Verdict = Unclear
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
		f.Verdict = Held
	case contradicted == len(values):
		f.Verdict = Contradicted
	default:
		f.Verdict = Partly
	}
}

// settleTogether sets the verdict of a figure by the median of the rounds or by the interval around this median. It
// ignores rounds without a value. If too few rounds remain for an interval, the figure is unclear.
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
		f.Verdict = Reported
		return
	case f.Interval == nil || f.Interval.Confidence == 0:
		f.Verdict = Unclear
		return
	}
	decisive := f.Interval.High
	if e.By == byMedian {
		decisive = f.Interval.Median
	} else if strings.HasPrefix(e.is.Operator, ">") {
		decisive = f.Interval.Low
	}
	f.Verdict = Missed
	if kept, sure := e.is.Keeps(decisive); kept && sure {
		f.Verdict = Held
	}
}

// known returns the values that are not nil.
func known(values []*results.Figure) (all []results.Figure) {
	for _, v := range values {
		if v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// sum returns the sum of the values. It is a lower bound if one of the values is a lower bound.
func sum(values []results.Figure) (total results.Figure) {
	for _, v := range values {
		total.Value, total.AtLeast = total.Value+v.Value, total.AtLeast || v.AtLeast
	}
	return total
}

// conclude returns the verdict on the claim: inconclusive if a figure is unclear, confirmed if all figures are held,
// refuted if all are contradicted or missed, and otherwise qualified. It ignores reported figures.
func conclude(outcomes []results.Verdict) results.Verdict {
	count := map[results.Verdict]int{}
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

// opposite reports whether the verdicts on a figure (without) and on its counter-case (with) are on different sides of
// the limit. If the figure is between the two limits, the counter-case may be on either side, but not between them.
func opposite(without, with results.Verdict) bool {
	against := func(o results.Verdict) bool { return o == Contradicted || o == Missed }
	switch {
	case without == Held:
		return against(with)
	case against(without):
		return with == Held
	}
	return without == Partly && (with == Held || against(with))
}

// expression is a figure of a run, or the ratio or the difference of two figures:
//
//	many.commands_per_acq / few.commands_per_acq
//	both[spin].handoff_p50 - both[pubsub].handoff_p50
//	all[mine].acq_per_s / best(all[redislock, redsync, spin].acq_per_s)
//
// The brackets contain the strategy and the point of the sweep, as in the report; a run with one strategy and no sweep
// needs no brackets. best is the best of several strategies in the same round (see operand.bestFigure).
type expression struct {
	Text     string
	operands []operand
	divided  bool // the result is the ratio of the operands; otherwise their difference
	unit     results.Unit
}

type operand struct {
	run    string
	titles []string // if there are several, the best one counts
	metric results.Metric
}

// UnmarshalText parses an expression.
func (e *expression) UnmarshalText(text []byte) (err error) {
	*e, err = parseExpression(oneLine(string(text)))
	return err
}

func parseExpression(text string) (expression, error) {
	e := expression{Text: text, divided: strings.Contains(text, " / ")}
	operator := " - "
	if e.divided {
		operator = " / "
	}
	for part := range strings.SplitSeq(text, operator) {
		o, err := parseOperand(part)
		if err != nil {
			return e, fmt.Errorf("%q: %w", part, err)
		}
		e.operands = append(e.operands, o)
	}
	first, last := e.operands[0], e.operands[len(e.operands)-1]
	switch {
	case len(e.operands) > 2:
		return e, fmt.Errorf("%q has more than two figures", text)
	case first.metric.Unit != last.metric.Unit:
		return e, fmt.Errorf("%q: %s and %s have different units", text, first.metric.Name, last.metric.Name)
	case len(e.operands) == 2 && first.best() && last.best():
		return e, fmt.Errorf(`%q uses "best" twice; only one operand may be "best"`, text)
	}
	if e.unit = first.metric.Unit; e.divided {
		e.unit = results.Number
	}
	return e, nil
}

// operandForm matches an operand. Its groups are "best(", the run, the strategies in brackets, the metric and ")".
var operandForm = regexp.MustCompile(`^(best\()?([^][(). ]+)(?:\[([^][]+)\])?\.(\w+)(\))?$`)

func parseOperand(text string) (operand, error) {
	m := operandForm.FindStringSubmatch(text)
	if m == nil || (m[1] == "") != (m[5] == "") || m[1] != "" && !strings.Contains(m[3], ", ") {
		return operand{},
			errors.New("not of the form RUN.METRIC, RUN[STRATEGY].METRIC or best(RUN[STRATEGY, STRATEGY].METRIC)")
	}
	o := operand{run: m[2], titles: []string{m[3]}}
	var err error
	if o.metric, err = metric(m[4]); err != nil {
		return o, err
	}
	if m[1] != "" {
		if o.titles = strings.Split(m[3], ", "); o.metric.Better == results.Neither {
			return o, fmt.Errorf("best does not apply to %s, because neither high nor low values are better", o.metric.Name)
		}
	}
	return o, nil
}

// metric returns the metric with this name. If there is none, the error suggests a similar name.
func metric(name string) (results.Metric, error) {
	found, known := results.FindMetric(name)
	if known {
		return found, nil
	}
	var names []string
	for _, m := range results.Metrics() {
		names = append(names, m.Name)
	}
	return found, fmt.Errorf("no metric %q%s", name, words.Suggest("%q", name, names))
}

// like reports whether two expressions have the same metrics and the same operator.
func (e expression) like(other expression) bool {
	same := func(a, b operand) bool { return a.metric.Name == b.metric.Name }
	return e.divided == other.divided && slices.EqualFunc(e.operands, other.operands, same)
}

// best reports whether the operand is the best of several strategies.
func (o operand) best() bool { return len(o.titles) > 1 }

// in returns the value of the expression in a round, and the title of the best strategy. The value is nil if it is not
// known.
func (e expression) in(runs map[string]*measured, round int) (*results.Figure, string) {
	first, whose := e.operands[0].bestFigure(runs, round)
	if first == nil || len(e.operands) == 1 {
		return first, whose
	}
	// Only one operand can use best, so whose or other is always "".
	second, other := e.operands[1].bestFigure(runs, round)
	// If the divisor or subtrahend is only a lower bound, the result has no lower bound.
	if second == nil || second.AtLeast || e.divided && second.Value == 0 {
		return nil, ""
	}
	value := first.Value - second.Value
	if e.divided {
		value = first.Value / second.Value
	}
	return &results.Figure{Value: value, AtLeast: first.AtLeast}, whose + other
}

// bestFigure returns the operand's figure in a round, and the title of the best strategy. The metric determines whether
// the largest or the smallest figure is the best. Of equal figures, the first is the best. If a figure is not known,
// bestFigure returns nil, because that figure may be the best. If lower is better, a lower bound counts as its value,
// which is the best possible value.
func (o operand) bestFigure(runs map[string]*measured, round int) (best *results.Figure, whose string) {
	lower := o.metric.Better == results.Lower
	for _, title := range o.titles {
		f := o.of(runs[o.run], title, round)
		if f == nil || !o.best() {
			return f, ""
		}
		if best == nil || lower && f.Value < best.Value || !lower && f.Value > best.Value {
			best, whose = &results.Figure{Value: f.Value, AtLeast: f.AtLeast && !lower}, title
		}
	}
	return best, whose
}

// of returns the operand's figure in a round for the strategy with this title. It returns nil if that strategy's run is
// missing, invalid or incomplete.
func (o operand) of(m *measured, title string, round int) *results.Figure {
	wanted, err := titled(title, m.titles())
	if err != nil {
		return nil
	}
	for _, run := range m.runs() {
		if run.Title() == wanted && run.Round == round && run.Complete() {
			return o.metric.Of(run)
		}
	}
	return nil
}

// titled returns the title in all that wanted names. This is the title that equals wanted or, without such a title, the
// only title that contains all words of wanted. If wanted is "", it is the only title. An ambiguous name is an error.
func titled(wanted string, all []string) (string, error) {
	if slices.Contains(all, wanted) {
		return wanted, nil
	}
	var fits []string
	for _, title := range all {
		words := strings.Fields(title)
		if !slices.ContainsFunc(strings.Fields(wanted), func(w string) bool { return !slices.Contains(words, w) }) {
			fits = append(fits, title)
		}
	}
	if len(fits) == 1 {
		return fits[0], nil
	}
	return "", fmt.Errorf("%d strategies match [%s]; strategies of the run: %s", len(fits), wanted,
		strings.Join(all, "; "))
}
