// Package claims tests statements about Redis locks. A claim is a YAML file with the statement, the command lines of
// its experiment, and the limits within which the figures confirm it. docs/CONTRIBUTING.md describes the format.
package claims

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// Claim is a statement about locks, with the experiment that tests it. The keys of its file are the names of the fields
// in lower case.
type Claim struct {
	File   string `yaml:"-"`
	Number int    // in lockbench's list of claims; 0 if the claim is not in the list
	Says   Text   // the statement
	Rounds int    // of each run; only values of the same round are compared
	// Generators is the number of processes that run the command line at the same time. Their reports are merged. 0 means
	// only this process.
	Generators  int
	Runs        runs
	CounterRuns runs `yaml:"counter-runs"` // runs that only counter-cases need
	Expect      []expectation
	Qualified   Text   // explains the result if only a part of the statement holds
	Tests       []Text // tests of the same statement, as package and name
	About       Text   // explains the experiment
	Shows       []Text // further metrics to show for all strategies of all runs
}

// Run is a command line of lockbench with a name.
type Run struct {
	Name string
	Line string // without the name of the program, --runs and outputs
}

// expectation is a figure with the limits that it must satisfy.
type expectation struct {
	What    Text
	Figure  expression
	Limits  `yaml:",inline"`
	Counter *counterCase

	is, opposite results.Limit // Is and Opposite, parsed
}

// Limits are the conditions under which a figure confirms or contradicts a claim.
type Limits struct {
	Is       Text `json:"is"`                 // the figure confirms the claim; "" with By means that it is only reported
	Opposite Text `json:"opposite,omitempty"` // the figure contradicts the claim; "" means whenever Is does not hold
	Total    bool `json:"total,omitempty"`    // the sum of all rounds must keep the limits, not each round
	By       Text `json:"judged,omitempty"`   // interval: its worse end must keep Is; median; "": each round
}

// counterCase is the same figure in another run: with a lock that is broken on purpose, with another option, or in
// another scenario. In that run, the figure must be on the other side of its limit. If it is on the same side, the
// figure does not depend on the subject of the claim and shows nothing.
type counterCase struct {
	With   Text // describes the other run
	Figure expression
}

func (e expectation) figures() []expression {
	if e.Counter == nil {
		return []expression{e.Figure}
	}
	return []expression{e.Figure, e.Counter.Figure}
}

// Name returns the number of the claim or, for a claim without a number, the name of its file without the extension.
func (c Claim) Name() string {
	if c.Number > 0 {
		return strconv.Itoa(c.Number)
	}
	return strings.TrimSuffix(path.Base(c.File), path.Ext(c.File))
}

// Words returns the arguments of a run: its line, --runs and --no-baselines.
func (c Claim) Words(r Run) []string {
	return append(strings.Fields(r.Line), "--runs", strconv.Itoa(c.Rounds), "--no-baselines")
}

// Command returns the shell command that executes a run.
func (c Claim) Command(r Run) string {
	command := "lockbench"
	for _, word := range c.Words(r) {
		command += " " + words.Quoted(word)
	}
	if c.Generators > 0 {
		command += fmt.Sprintf(" --generators %d", c.Generators)
	}
	return command
}

// operands returns the operands that refer to a run. If strictly is set, it leaves out the operands of expectations
// with By, because a missing value does not make the verdict on such an expectation unclear.
func (c Claim) operands(run Run, strictly bool) []operand {
	var all []operand
	for _, e := range c.Expect {
		for _, figure := range e.figures() {
			for _, o := range figure.operands {
				if o.run == run.Name && (!strictly || e.By == "") {
					all = append(all, o)
				}
			}
		}
	}
	return all
}

// Countered returns the claim with the runs of its counter-cases added to Runs. If with is false, it returns the claim
// with its counter-cases removed.
func (c Claim) Countered(with bool) Claim {
	if with {
		c.Runs = slices.Concat(c.Runs, c.CounterRuns)
		return c
	}
	c.Expect = slices.Clone(c.Expect)
	for i := range c.Expect {
		c.Expect[i].Counter = nil
	}
	return c
}

//go:embed data/*.yaml
var data embed.FS

// All returns the claims that are part of lockbench, in the order of their numbers.
func All() ([]Claim, error) {
	entries, err := data.ReadDir("data")
	if err != nil {
		return nil, fmt.Errorf("list the claims: %w", err)
	}
	var all []Claim
	for _, entry := range entries {
		content, err := data.ReadFile("data/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read a claim: %w", err)
		}
		claim, err := Parse(entry.Name(), content)
		if err != nil {
			return nil, err
		}
		all = append(all, claim)
	}
	slices.SortFunc(all, func(a, b Claim) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}

// Parse parses the file of a claim. It returns an error for each key and each expectation that is wrong, joined. It
// does not check the command lines (see Bench.Check).
func Parse(name string, content []byte) (Claim, error) {
	c := Claim{File: untrusted.Printable(name), Rounds: 3}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	var problems []error
	switch err := decoder.Decode(&c); {
	case errors.Is(err, io.EOF):
		problems = []error{errors.New("the file is empty")}
	case err != nil: // the error contains the line numbers
		problems = []error{errors.New(strings.TrimPrefix(oneLine(err.Error()), "yaml: unmarshal errors: "))}
	case !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF):
		problems = []error{
			errors.New("there is text after the end of the claim: a file must contain exactly one claim"),
		}
	default:
		problems = c.check()
	}
	for i, problem := range problems {
		problems[i] = fmt.Errorf("%s: %w", c.File, problem)
	}
	return c, errors.Join(problems...)
}

// oneLine converts an untrusted text to one printable line.
func oneLine(text string) string { return strings.Join(strings.Fields(untrusted.Printable(text)), " ") }

// Text is a text from a claim's file, converted to one printable line.
type Text string

// UnmarshalText converts the text to one printable line.
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text(oneLine(string(text)))
	return nil
}

type runs []Run

// UnmarshalYAML parses a mapping of names to command lines, and keeps the order of the lines.
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

// check returns the errors that the YAML decoder cannot find: at most one for each expectation. It also parses the
// limits.
func (c *Claim) check() (problems []error) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, key := range []struct {
		name  string
		given bool
	}{{"says", c.Says != ""}, {"runs", len(c.Runs) > 0}, {"expect", len(c.Expect) > 0}} {
		if !key.given {
			report(`a claim needs the keys "says", "runs" and "expect"; missing: %q`, key.name)
		}
	}
	if c.Rounds < 1 {
		report("rounds must be at least 1")
	}
	if c.Generators < 0 || c.Generators == 1 {
		report("generators must be at least 2")
	}
	for _, name := range c.Shows {
		if _, err := metric(string(name)); err != nil {
			report("shows: %w", err)
		}
	}
	for i := range c.Expect {
		e := &c.Expect[i]
		if err := e.check(); err != nil {
			report("expectation %d: %w", i+1, err)
		}
		for place, figure := range e.figures() {
			there := [][]Run{c.Runs, slices.Concat(c.Runs, c.CounterRuns)}[place]
			for _, o := range figure.operands {
				if !slices.ContainsFunc(there, func(r Run) bool { return r.Name == o.run }) {
					report("expectation %d: %s: the claim has no run %q", i+1, figure.Text, o.run)
				}
			}
		}
	}
	return problems
}

// check parses the limits of the expectation, and returns the first error in the expectation.
func (e *expectation) check() error {
	if e.What == "" || e.Figure.operands == nil || e.Is == "" && e.By == "" {
		return errors.New(`the keys "what", "figure" and "is" (or "by") are required`)
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
		return fmt.Errorf(`"by" must be interval or median, not %q`, e.By)
	case e.By != "" && (e.Opposite != "" || e.Total):
		return fmt.Errorf(`"by: %s" cannot be combined with opposite or total`, e.By)
	case e.By != "" && e.Is != "" && !slices.Contains([]string{"<", "<=", ">", ">="}, e.is.Operator):
		return fmt.Errorf(`"by: %s" needs a limit with <, <=, > or >=, not %q`, e.By, e.Is)
	case e.Counter == nil:
		return nil
	case e.Counter.With == "" || e.Counter.Figure.operands == nil:
		return errors.New(`a counter-case needs the keys "with" and "figure"`)
	case !e.Counter.Figure.like(e.Figure):
		return fmt.Errorf("counter: %q must use the same metrics and operator as %q", e.Counter.Figure.Text, e.Figure.Text)
	}
	return nil
}
