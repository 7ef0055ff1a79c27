package claims

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/suggest"
	"github.com/lockbench/lockbench/results"
)

// expression is a figure of a run, or the ratio or difference of two:
//
//	many.commands_per_acq / few.commands_per_acq
//	both[spin].handoff_p50 - both[pubsub].handoff_p50
//	all[mine].acq_per_s / best(all[redislock, redsync, spin].acq_per_s)
//
// The brackets name the strategy and point of a run, as in the report, if there are several. best is the
// best of several in the same round, see bestOf.
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

// parseExpression parses an expression and returns all errors.
func parseExpression(text string) (expression, error) {
	e := expression{Text: strings.TrimSpace(text)}
	parts := []string{e.Text}
	for _, operator := range []string{" / ", " - "} {
		if strings.Contains(e.Text, operator) {
			parts = strings.Split(e.Text, operator)
			e.divided = operator == " / "
			break
		}
	}
	if len(parts) > 2 || len(parts) == 2 && strings.Contains(parts[1], " - ") {
		return e, fmt.Errorf("%q has more than two figures", e.Text)
	}
	var problems []error
	for _, part := range parts {
		o, err := parseOperand(strings.TrimSpace(part))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		e.operands = append(e.operands, o)
	}
	if len(problems) > 0 {
		return e, errors.Join(problems...)
	}
	e.unit = e.operands[0].metric.Unit
	if len(parts) == 2 {
		if other := e.operands[1].metric.Unit; other != e.unit {
			return e, fmt.Errorf("%q: %s and %s have different units", e.Text, e.operands[0].metric.Name, e.operands[1].metric.Name)
		}
		if e.operands[0].best() && e.operands[1].best() {
			return e, fmt.Errorf("%q looks for the best twice", e.Text)
		}
		if e.divided {
			e.unit = results.Number
		}
	}
	return e, nil
}

func parseOperand(text string) (operand, error) {
	inside, best := strings.CutPrefix(text, "best(")
	if best {
		var closed bool
		if inside, closed = strings.CutSuffix(inside, ")"); !closed {
			return operand{}, fmt.Errorf("%q: the ( is not closed", text)
		}
	}
	o, err := parseFigure(inside)
	if err != nil || !best {
		return o, err
	}
	o.titles = strings.Split(o.titles[0], ", ")
	switch {
	case len(o.titles) < 2:
		return o, fmt.Errorf("%q is not of the form best(RUN[STRATEGY, STRATEGY].METRIC)", text)
	case o.metric.Better == results.Neither:
		return o, fmt.Errorf("%q: no %s is better than another", text, o.metric.Name)
	}
	return o, nil
}

func parseFigure(text string) (operand, error) {
	at := strings.LastIndex(text, ".")
	if at <= 0 {
		return operand{}, fmt.Errorf("%q is not of the form RUN.METRIC or RUN[STRATEGY].METRIC", text)
	}
	o := operand{run: text[:at], titles: []string{""}}
	if before, inside, there := strings.Cut(o.run, "["); there {
		title, closed := strings.CutSuffix(inside, "]")
		if !closed || title == "" {
			return operand{}, fmt.Errorf("%q is not of the form RUN[STRATEGY].METRIC", text)
		}
		o.run, o.titles = before, []string{title}
	}
	metric, known := results.FindMetric(text[at+1:])
	if !known {
		var names []string
		for _, m := range results.Metrics() {
			names = append(names, m.Name)
		}
		return operand{}, fmt.Errorf("%q: no metric %q%s", text, text[at+1:], suggest.Question("%q", text[at+1:], names))
	}
	o.metric = metric
	return o, nil
}

// in returns the value in one round, for which look returns the figures; nil if not known.
func (e expression) in(look func(operand) *results.Figure) *results.Figure {
	first := look(e.operands[0])
	if first == nil || len(e.operands) == 1 {
		return first
	}
	second := look(e.operands[1])
	// A lower bound as divisor or subtrahend gives no bound of the result.
	if second == nil || second.AtLeast || e.divided && second.Value == 0 {
		return nil
	}
	if e.divided {
		return &results.Figure{Value: first.Value / second.Value, AtLeast: first.AtLeast}
	}
	return &results.Figure{Value: first.Value - second.Value, AtLeast: first.AtLeast}
}
