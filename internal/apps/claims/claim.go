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

	"github.com/lockbench/lockbench/results"
)

// Claim is a statement about locks, with the experiment that tests it.
type Claim struct {
	File   string // its file
	Number int    // in the list of claims; 0 if it is not in it
	Says   string
	Runs   []Run
	Rounds int // of each run; the values of one round are compared
	expect []expectation
	// CounterRuns are only used by the counter-cases, see Counter.
	CounterRuns []Run
	// Qualified says how to read the claim if only a part of it holds.
	Qualified string
	Tests     []string         // tests that show it too, with package and name
	About     string           // what to know about the experiment
	Shows     []results.Metric // of all strategies of all runs, in addition to the expected figures
}

// Run is a command line of lockbench with a name in the claim.
type Run struct {
	Name string
	Line string // without the program's name, rounds and outputs
	// Generators is the number of processes that run the line together, each the whole line; their
	// reports are merged. 0 means only this process.
	Generators int
	line       int
}

// expectation is what a figure must be.
type expectation struct {
	What     string // what the figure is, in words
	Figure   expression
	Is       results.Limit  // the claim holds; with By its text may be "", and then the figure is only reported
	Opposite *results.Limit // the claim is contradicted; nil means wherever it does not hold
	Total    bool           // the sum of all rounds counts, not each round
	counter  *counterCase   // nil for none
	By       string         // "interval" or "median" of the rounds; "" means each round
	line     int
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
	if r.Generators > 0 {
		command += fmt.Sprintf("  # %d processes in one --session, merged", r.Generators)
	}
	return command
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
		text, err := data.ReadFile("data/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read a claim: %w", err)
		}
		claim, err := Parse(entry.Name(), text)
		if err != nil {
			return nil, err
		}
		all = append(all, claim)
	}
	slices.SortFunc(all, func(a, b Claim) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}
