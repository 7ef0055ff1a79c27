// Package claims tests statements about Redis locks. A claim is data: a YAML file with the sentence, the
// command lines of its experiment, and what their figures must be for it to be true. See
// docs/CONTRIBUTING.md for the form.
package claims

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Claim is a statement about locks, with the experiment that tests it. The tags are the keys of its file.
type Claim struct {
	File   string `yaml:"-"`
	Number int    `yaml:"number"` // in the list of claims; 0 if it is not in it
	Says   Text   `yaml:"says"`
	Rounds int    `yaml:"rounds"` // of each run; the values of one round are compared
	// Generators is the number of processes that run each line together, each the whole line; their
	// reports are merged. 0 means only this process.
	Generators  int           `yaml:"generators"`
	Runs        runs          `yaml:"runs"`
	CounterRuns runs          `yaml:"counter-runs"` // only for counter-cases
	Expect      []expectation `yaml:"expect"`
	Qualified   Text          `yaml:"qualified"` // how to read the claim if only a part of it holds
	Tests       []Text        `yaml:"tests"`     // tests that show it too, with package and name
	About       Text          `yaml:"about"`     // what to know about the experiment
	Shows       []Text        `yaml:"shows"`     // metrics of all strategies of all runs, besides the expected figures
}

// Run is a command line of lockbench with a name in the claim.
type Run struct {
	Name string
	Line string // without the program's name, rounds and outputs
	at   int    // its line in the file
}

// expectation says what a figure must be.
type expectation struct {
	What     Text         `yaml:"what"`
	Figure   expression   `yaml:"figure"`
	Is       limit        `yaml:"is"`       // the claim holds; with By it may be missing: the figure is only reported
	Opposite limit        `yaml:"opposite"` // the claim is contradicted; if it is missing, wherever it does not hold
	Total    bool         `yaml:"total"`    // the sum of all rounds counts, not each round
	By       string       `yaml:"by"`       // what must keep the limit: interval or median; "" means each round
	Counter  *counterCase `yaml:"counter"`
}

// counterCase is the same figure of another run, in which it must be on the other side of its limit: with a lock
// that is broken on purpose, another option, or another scenario. A figure on the same side shows nothing
// about the claim.
type counterCase struct {
	With   Text       `yaml:"with"` // the other run, in words
	Figure expression `yaml:"figure"`
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
	command := "lockbench " + strings.Join(c.Words(r), " ")
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

// WithCounterCases returns the claims with the runs of their counter-cases. The error names each figure
// without one.
func WithCounterCases(all []Claim) ([]Claim, error) {
	all = slices.Clone(all)
	var problems []error
	for i, c := range all {
		all[i].Runs, all[i].CounterRuns = slices.Concat(c.Runs, c.CounterRuns), nil
		for _, e := range c.Expect {
			if e.Counter == nil {
				problems = append(problems, c.problem(e.Figure.at, "%s: it has no counter-case (counter)", e.What))
			}
		}
	}
	return all, errors.Join(problems...)
}

// WithoutCounterCases returns the claims alone.
func WithoutCounterCases(all []Claim) []Claim {
	all = slices.Clone(all)
	for i := range all {
		all[i].CounterRuns, all[i].Expect = nil, slices.Clone(all[i].Expect)
		for e := range all[i].Expect {
			all[i].Expect[e].Counter = nil
		}
	}
	return all
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

// shown returns the metrics that the claim shows.
func (c Claim) shown() []results.Metric {
	var all []results.Metric
	for _, name := range c.Shows {
		if metric, known := results.FindMetric(string(name)); known { // Parse reports the others
			all = append(all, metric)
		}
	}
	return all
}
