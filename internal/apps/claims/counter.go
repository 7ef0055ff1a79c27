package claims

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// counterCase is an arm in which a figure must be on the other side of its limit: a lock that is broken on
// purpose, another option, or another scenario. A figure on the same side shows nothing about the
// claim.
type counterCase struct {
	With   string     // the arm, in words
	Figure expression // the same figure for that arm
	line   int
}

func (p *parser) counter(e *expectation) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			p.problem(n.Line, "a counter-case is lines of with and figure")
			return
		}
		c := &counterCase{line: n.Line}
		var figure string
		p.lines(n, map[string]func(*yaml.Node){"with": p.word(&c.With), "figure": p.word(&figure)})
		if c.With == "" || figure == "" {
			p.problem(n.Line, "a counter-case needs with and figure")
			return
		}
		var err error
		if c.Figure, err = parseExpression(figure); err != nil {
			p.problem(n.Line, "counter: %w", err)
			return
		}
		e.counter = c
	}
}

// wrongCounter returns an error if the counter-case is not the same figure for another arm.
func (e expectation) wrongCounter() error {
	if e.counter == nil {
		return nil
	}
	same := slices.EqualFunc(e.Figure.operands, e.counter.Figure.operands, func(a, b operand) bool { return a.metric.Name == b.metric.Name })
	if !same || e.Figure.divided != e.counter.Figure.divided {
		return fmt.Errorf("counter: %q is to be made of the same metrics as %q", e.counter.Figure.Text, e.Figure.Text)
	}
	if e.counter.Figure.Text == e.Figure.Text {
		return fmt.Errorf("counter: %q is the figure itself", e.Figure.Text)
	}
	return nil
}

// CountersMissing returns an error for every figure without a counter-case, with file and line.
func CountersMissing(all []Claim) error {
	var problems []error
	for _, c := range all {
		for _, e := range c.expect {
			if e.counter == nil {
				problems = append(problems, fmt.Errorf("%s:%d: %s: it has no counter-case (counter)", c.File, e.line, e.What))
			}
		}
	}
	return errors.Join(problems...)
}

// Countered returns the claims with the figures of their counter-cases after their own, to test them
// together; CounterCases pairs them again.
func Countered(all []Claim) []Claim {
	with := slices.Clone(all)
	for i, c := range all {
		with[i].Runs, with[i].CounterRuns = c.all(), nil
		with[i].expect = slices.Clone(c.expect)
		for _, e := range c.expect {
			if e.counter == nil {
				continue
			}
			other := e
			other.What, other.Figure, other.line, other.counter = e.counter.With, e.counter.Figure, e.counter.line, nil
			with[i].expect = append(with[i].expect, other)
		}
	}
	return with
}
