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

// expression is a figure of a run, or the ratio or difference of two:
//
//	many.commands_per_acq / few.commands_per_acq
//	both[spin].handoff_p50 - both[pubsub].handoff_p50
//	all[mine].acq_per_s / best(all[redislock, redsync, spin].acq_per_s)
//
// The brackets name the strategy and point of a run, as in the report, if there are several. best is the
// best of several in the same round, see operand.look.
type expression struct {
	Text     string
	operands []operand
	divided  bool // otherwise the second is subtracted
	unit     results.Unit
}

type operand struct {
	run    string
	titles []string // one, or several: then the best counts
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
		return e, fmt.Errorf("%q looks for the best twice", text)
	}
	if e.unit = first.metric.Unit; e.divided {
		e.unit = results.Number
	}
	return e, nil
}

// operandForm matches best( RUN [TITLE] METRIC ).
var operandForm = regexp.MustCompile(`^(best\()?([^][(). ]+)(?:\[([^][]+)\])?\.(\w+)(\))?$`)

func parseOperand(text string) (operand, error) {
	m := operandForm.FindStringSubmatch(text)
	if m == nil || (m[1] == "") != (m[5] == "") || m[1] != "" && !strings.Contains(m[3], ", ") {
		return operand{},
			errors.New("it is not of the form RUN.METRIC, RUN[STRATEGY].METRIC or best(RUN[STRATEGY, STRATEGY].METRIC)")
	}
	o := operand{run: m[2], titles: []string{m[3]}}
	var err error
	if o.metric, err = metric(m[4]); err != nil {
		return o, err
	}
	if m[1] != "" {
		if o.titles = strings.Split(m[3], ", "); o.metric.Better == results.Neither {
			return o, fmt.Errorf("no %s is better than another", o.metric.Name)
		}
	}
	return o, nil
}

// metric returns the metric of a name.
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

// like says whether two expressions are made of the same metrics.
func (e expression) like(other expression) bool {
	same := func(a, b operand) bool { return a.metric.Name == b.metric.Name }
	return e.divided == other.divided && slices.EqualFunc(e.operands, other.operands, same)
}

// best says whether the operand is the best of several.
func (o operand) best() bool { return len(o.titles) > 1 }

// in returns the value in a round, and whose the best is; nil if the value is not known.
func (e expression) in(runs map[string]*measured, round int) (*results.Figure, string) {
	first, whose := e.operands[0].look(runs, round)
	if first == nil || len(e.operands) == 1 {
		return first, whose
	}
	second, other := e.operands[1].look(runs, round)
	// A lower bound as divisor or subtrahend gives no bound of the result.
	if second == nil || second.AtLeast || e.divided && second.Value == 0 {
		return nil, ""
	}
	value := first.Value - second.Value
	if e.divided {
		value = first.Value / second.Value
	}
	return &results.Figure{Value: value, AtLeast: first.AtLeast}, whose + other
}

// look returns the operand's figure in a round. The best of several is by the metric's direction; of equal
// ones it is the first. It is nil if one figure is not known, because that one may be the best. If lower is
// better, a lower bound counts as its value: that is the best that it may have been.
func (o operand) look(runs map[string]*measured, round int) (best *results.Figure, whose string) {
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

// of returns the operand's figure in a round of one of its titles; nil if it cannot be trusted.
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

// titled returns the title that is meant: the one with that name, or the only one with all its words, or
// the only one.
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
	return "", fmt.Errorf("%d strategies fit [%s], there are: %s", len(fits), wanted, strings.Join(all, "; "))
}
