package claims

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
)

// Parse reads a claim's file. Bench.Check tests its command lines.
func Parse(name string, content []byte) (Claim, error) {
	c := Claim{File: untrusted.Printable(name), Rounds: 3}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	err := decoder.Decode(&c)
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("the file is empty")
	case err != nil: // it names the lines itself
		err = errors.New(strings.TrimPrefix(oneLine(err.Error()), "yaml: unmarshal errors: "))
	case !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF):
		err = errors.New("there is something after the end of the claim: a file has one")
	default:
		err = c.check()
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", c.File, err)
	}
	return c, nil
}

// oneLine returns a text of others as one printable line.
func oneLine(text string) string { return strings.Join(strings.Fields(untrusted.Printable(text)), " ") }

// Text is a text of a file as one printable line.
type Text string

// UnmarshalText keeps the text.
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text(oneLine(string(text)))
	return nil
}

type runs []Run

// UnmarshalYAML reads lines of a name and a command line, and keeps their order.
func (r *runs) UnmarshalYAML(n *yaml.Node) error {
	var lines map[string]Text
	if err := n.Decode(&lines); err != nil {
		return err
	}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		*r = append(*r, Run{Name: oneLine(name), Line: string(lines[name])})
	}
	return nil
}

// check returns the first error that the decoder does not find, and parses the limits.
func (c *Claim) check() error {
	switch {
	case c.Says == "" || len(c.Runs) == 0 || len(c.Expect) == 0:
		return errors.New("a claim needs says, runs and expect")
	case c.Rounds < 1:
		return errors.New("rounds must be at least 1")
	case c.Generators < 0 || c.Generators == 1:
		return errors.New("generators must be at least 2")
	}
	for _, name := range c.Shows {
		if _, err := metric(string(name)); err != nil {
			return fmt.Errorf("shows: %w", err)
		}
	}
	for i := range c.Expect {
		e := &c.Expect[i]
		if err := e.check(); err != nil {
			return fmt.Errorf("expectation %d: %w", i+1, err)
		}
		for place, figure := range e.figures() {
			there := [][]Run{c.Runs, slices.Concat(c.Runs, c.CounterRuns)}[place]
			for _, o := range figure.operands {
				if !slices.ContainsFunc(there, func(r Run) bool { return r.Name == o.run }) {
					return fmt.Errorf("expectation %d: %s: there is no run %q", i+1, figure.Text, o.run)
				}
			}
		}
	}
	return nil
}

// check returns an error of the expectation, and parses its limits.
func (e *expectation) check() error {
	if e.What == "" || e.Figure.operands == nil || e.Is == "" && e.By == "" {
		return errors.New("it needs what, figure and is")
	}
	var err error
	if e.Is != "" {
		e.is, err = results.ParseLimit(string(e.Is), e.Figure.unit)
	}
	if e.Opposite != "" && err == nil {
		e.opposite, err = results.ParseLimit(string(e.Opposite), e.Figure.unit)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", e.What, err)
	case e.By != "" && e.By != byInterval && e.By != byMedian:
		return fmt.Errorf("by must be interval or median, not %q", e.By)
	case e.By != "" && (e.Opposite != "" || e.Total):
		return fmt.Errorf("by %s goes with neither opposite nor total", e.By)
	case e.By != "" && e.Is != "" && !slices.Contains([]string{"<", "<=", ">", ">="}, e.is.Operator):
		return fmt.Errorf("by %s takes <, <=, > or >=, not %q", e.By, e.Is)
	case e.Counter == nil:
		return nil
	case e.Counter.With == "" || e.Counter.Figure.operands == nil:
		return errors.New("a counter-case needs with and figure")
	case !e.Counter.Figure.like(e.Figure):
		return fmt.Errorf("counter: %q must be made of the same metrics as %q", e.Counter.Figure.Text, e.Figure.Text)
	}
	return nil
}
