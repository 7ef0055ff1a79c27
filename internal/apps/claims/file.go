package claims

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// Parse reads a claim's file and returns all errors in it, with file and, where it is known, line. Check
// tests its command lines.
func Parse(name string, content []byte) (Claim, error) {
	c := Claim{File: untrusted.Printable(name), Rounds: 3}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	var several *yaml.TypeError
	var problems []error
	if err := decoder.Decode(&c); errors.As(err, &several) {
		for _, problem := range several.Errors {
			problems = append(problems, c.misread(problem))
		}
	} else if err != nil {
		return c, c.misread(err.Error())
	}
	if several != nil && strings.HasSuffix(several.Errors[0], " into claims.Claim") {
		return c, problems[0] // it is no claim at all
	}
	return c, errors.Join(append(problems, c.check()...)...)
}

// problem returns an error with its place; line 0 means that it is not known.
func (c Claim) problem(line int, format string, args ...any) error {
	if line == 0 {
		return fmt.Errorf("%s: %w", c.File, fmt.Errorf(format, args...))
	}
	return fmt.Errorf("%s:%d: %w", c.File, line, fmt.Errorf(format, args...))
}

var (
	placed  = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?((?s).*)`)
	unknown = regexp.MustCompile(`^field (.*) not found in type .*`)
	wrong   = regexp.MustCompile("^cannot unmarshal \\S+(?: `(.*)`)? into (\\S+)$")

	keys = strings.Fields("number says rounds generators runs counter-runs expect qualified tests about shows " +
		"with what figure is opposite total by counter")
	// wanted says what must be where the decoder expected a type.
	wanted = map[string]string{
		"claims.Claim": `lines of the form "says: …"`, "[]claims.expectation": "a list of figures",
		"claims.expectation": "lines of what, figure, is and opposite",
		"claims.counterCase": "lines of with and figure",
		"[]claims.Text":      "a list", "int": "a whole number", "bool": "true or false", "string": "a text",
	}
)

// misread returns an error for what the decoder reports.
func (c Claim) misread(text string) error {
	at := placed.FindStringSubmatch(untrusted.Printable(text))
	line, text := at[1], at[2]
	if field := unknown.FindStringSubmatch(text); field != nil {
		text = fmt.Sprintf("there is no %q in a claim%s", field[1], words.Suggest("%q", field[1], keys))
	} else if kind := wrong.FindStringSubmatch(text); kind != nil && wanted[kind[2]] != "" {
		text = "there must be " + wanted[kind[2]]
		if kind[1] != "" {
			text += fmt.Sprintf(", not %q", kind[1])
		}
	} else if text == "EOF" {
		text = "the file is empty"
	}
	if line == "" {
		return fmt.Errorf("%s: %s", c.File, text)
	}
	return fmt.Errorf("%s:%s: %s", c.File, line, text)
}

// faults are errors in a node of a file, in the decoder's form.
type faults []string

func (f *faults) add(line int, err error) {
	if err == nil {
		return
	}
	for text := range strings.Lines(err.Error()) {
		*f = append(*f, fmt.Sprintf("line %d: %s", line, strings.TrimSpace(text)))
	}
}

func (f *faults) err() error {
	if len(*f) == 0 {
		return nil
	}
	return &yaml.TypeError{Errors: *f}
}

// Text is a text of a file as one printable line.
type Text string

// UnmarshalYAML reads the text.
func (t *Text) UnmarshalYAML(n *yaml.Node) error {
	var found faults
	*t = found.text(n)
	return found.err()
}

func (f *faults) text(n *yaml.Node) Text {
	text := strings.Join(strings.Fields(untrusted.Printable(n.Value)), " ")
	if text == "" {
		f.add(n.Line, errors.New("there must be a text"))
	}
	return Text(text)
}

type runs []Run

// UnmarshalYAML reads lines of a name and a command line, and keeps their order.
func (r *runs) UnmarshalYAML(n *yaml.Node) error {
	var found faults
	if n.Kind != yaml.MappingNode {
		found.add(n.Line, errors.New(`runs are lines of the form "name: --strategy spin --clients 10"`))
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		run := Run{Name: untrusted.Printable(name.Value), Line: string(found.text(value)), at: value.Line}
		if strings.ContainsAny(run.Name, "[]().,/ ") {
			err := fmt.Errorf("the name of run %q must have no brackets, dots, commas, slashes and blanks", run.Name)
			found.add(name.Line, err)
		}
		if strings.ContainsAny(run.Line, `'"\`) {
			found.add(value.Line, errors.New("a command line here needs no quotes"))
		}
		*r = append(*r, run)
	}
	return found.err()
}

// limit is a limit of a figure. Its unit is the figure's, so that expectation.check parses it.
type limit struct{ results.Limit }

// UnmarshalYAML reads the text.
func (l *limit) UnmarshalYAML(n *yaml.Node) error {
	var text Text
	err := text.UnmarshalYAML(n)
	l.Text = string(text)
	return err
}

// check returns the errors that the decoder does not find, and parses the limits.
func (c *Claim) check() []error {
	var problems []error
	problem := func(line int, format string, args ...any) {
		problems = append(problems, c.problem(line, format, args...))
	}
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{c.Says == "", "it does not say what is claimed (says)"},
		{len(c.Runs) == 0, "it has no runs"},
		{len(c.Expect) == 0, "it expects nothing (expect)"},
		{c.Number < 0, "number must be at least 1"},
		{c.Rounds < 1, "rounds must be at least 1"},
		{c.Generators < 0 || c.Generators == 1, "generators must be at least 2"},
	} {
		if rule.broken {
			problem(0, "%s", rule.says)
		}
	}
	for _, name := range c.Shows {
		if _, known := results.FindMetric(string(name)); !known {
			problem(0, "shows: %w", noMetric(string(name)))
		}
	}
	all := slices.Concat(c.Runs, c.CounterRuns)
	for i, run := range all {
		if slices.ContainsFunc(all[:i], func(r Run) bool { return r.Name == run.Name }) {
			problem(run.at, "there are two runs %q", run.Name)
		}
	}
	for i := range c.Expect {
		e := &c.Expect[i]
		if e.What == "" || e.Figure.Text == "" || e.Is.Text == "" && e.By == "" {
			problem(e.Figure.at, "expectation %d needs what, figure and is", i+1)
			continue
		}
		for place, figure := range e.figures() {
			for _, o := range figure.operands {
				if !slices.ContainsFunc([]runs{c.Runs, all}[place], func(r Run) bool { return r.Name == o.run }) {
					problem(figure.at, "%s: there is no run %q", figure.Text, o.run)
				}
			}
		}
		for _, err := range e.check() {
			problem(e.Figure.at, "%w", err)
		}
	}
	return problems
}

// check returns the errors of an expectation, and parses its limits.
func (e *expectation) check() []error {
	if len(e.Figure.operands) == 0 {
		return nil // the decoder has reported it
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for i, l := range []*limit{&e.Is, &e.Opposite} {
		if l.Text == "" {
			continue
		}
		name := []string{"is", "opposite"}[i]
		var err error
		if l.Limit, err = results.ParseLimit(l.Text, e.Figure.unit); err != nil {
			problem("%s: %w", name, err)
		} else if kept, broken := e.Figure.reaches(l.Limit); !kept {
			problem("%s: no value of %s can be %s", name, e.Figure.Text, l.Text)
		} else if !broken {
			problem("%s: every value of %s is %s", name, e.Figure.Text, l.Text)
		}
	}
	switch {
	case e.By == "":
	case e.By != byInterval && e.By != byMedian:
		problem("by must be interval or median, not %q", untrusted.Printable(e.By))
	case e.Opposite.Text != "" || e.Total:
		problem("by %s goes with neither opposite nor total", e.By)
	case e.Is.Operator != "" && !slices.Contains([]string{"<", "<=", ">", ">="}, e.Is.Operator):
		problem("by %s takes <, <=, > or >=, not %q", e.By, e.Is.Text)
	}
	if e.Counter == nil {
		return problems
	}
	switch other := e.Counter.Figure; {
	case e.Counter.With == "" || other.Text == "":
		problem("a counter-case needs with and figure")
	case other.Text == e.Figure.Text:
		problem("counter: %q is the figure itself", other.Text)
	case len(other.operands) > 0 && !other.like(e.Figure):
		problem("counter: %q must be made of the same metrics as %q", other.Text, e.Figure.Text)
	}
	return problems
}

// reaches says whether some value of the figure keeps the limit, and whether some value breaks it; otherwise no
// measurement can change the verdict. A figure and a ratio are never negative, and a count is a whole
// number.
func (e expression) reaches(l results.Limit) (kept, broken bool) {
	at := l.Value
	single := len(e.operands) == 1
	for _, x := range []float64{at - 1, at, at + 1, at / 2, 0, math.Floor(at), math.Ceil(at)} {
		if (single || e.divided) && x < 0 || single && e.operands[0].metric.Whole && x != math.Trunc(x) {
			continue
		}
		keeps, _ := l.Keeps(results.Figure{Value: x})
		kept, broken = kept || keeps, broken || !keeps
	}
	return kept, broken
}
