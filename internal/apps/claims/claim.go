// Package claims tests statements about Redis locks. A claim is data: a YAML file with the sentence, the
// command lines of its experiment, and what their figures must be for it to be true. See
// docs/CONTRIBUTING.md for the form.
package claims

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// Claim is a statement about locks, with the experiment that tests it. Its file has the fields as keys, in
// small letters.
type Claim struct {
	File   string `yaml:"-"`
	Number int    // in the list of claims; 0 if it is not in it
	Says   Text
	Rounds int // of each run; the values of one round are compared
	// Generators is the number of processes that run each line together, each the whole line; their
	// reports are merged. 0 means only this process.
	Generators  int
	Runs        runs
	CounterRuns runs `yaml:"counter-runs"` // only for counter-cases
	Expect      []expectation
	Qualified   Text   // how to read the claim if only a part of it holds
	Tests       []Text // tests that show it too, with package and name
	About       Text   // what to know about the experiment
	Shows       []Text // metrics of all strategies of all runs, besides the expected figures
}

// Run is a command line of lockbench with a name in the claim.
type Run struct {
	Name string
	Line string // without the program's name, rounds and outputs
}

// expectation says what a figure must be.
type expectation struct {
	What    Text
	Figure  expression
	Limits  `yaml:",inline"`
	Counter *counterCase

	is, opposite results.Limit // Is and Opposite, parsed
}

// Limits say when a claim holds.
type Limits struct {
	Is       Text `json:"is"`                 // with By it may be "": the figure is only reported
	Opposite Text `json:"opposite,omitempty"` // the claim is contradicted; "" means wherever it does not hold
	Total    bool `json:"total,omitempty"`    // the sum of all rounds counts, not each round
	By       Text `json:"judged,omitempty"`   // what keeps Is: interval (its worse end) or median; "" means each round
}

// counterCase is the same figure of another run, in which it must be on the other side of its limit: with a lock
// that is broken on purpose, another option, or another scenario. A figure on the same side shows nothing
// about the claim.
type counterCase struct {
	With   Text // the other run, in words
	Figure expression
}

// figures returns the figure, and that of the counter-case.
func (e expectation) figures() []expression {
	if e.Counter == nil {
		return []expression{e.Figure}
	}
	return []expression{e.Figure, e.Counter.Figure}
}

// Name returns the claim's number, or if it has none, its file's name.
func (c Claim) Name() string {
	if c.Number > 0 {
		return strconv.Itoa(c.Number)
	}
	return strings.TrimSuffix(path.Base(c.File), path.Ext(c.File))
}

// Words returns a run's arguments: the line, and what the experiment adds.
func (c Claim) Words(r Run) []string {
	return append(strings.Fields(r.Line), "--runs", strconv.Itoa(c.Rounds), "--no-baselines")
}

// Command returns a run as a shell command.
func (c Claim) Command(r Run) string {
	command := "lockbench"
	for _, word := range c.Words(r) {
		command += " " + words.Quoted(word)
	}
	if c.Generators > 0 {
		command += fmt.Sprintf("  # %d processes in one --session, merged", c.Generators)
	}
	return command
}

// operands returns what the claim needs of a run, for all expectations or, if strictly, for those that use
// every round.
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

// Countered returns the claim with the runs of its counter-cases, or without its counter-cases.
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

// All returns the claims that come with lockbench, by number.
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
