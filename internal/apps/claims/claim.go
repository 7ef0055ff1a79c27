// Package claims puts what is said of Redis locks to the test. A claim is data: a
// YAML file with the sentence, the command lines that are its experiment, and
// what their figures must be for it to be true. See docs/CONTRIBUTING.md for
// the form.
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

// Claim is something that is said of locks, and the experiment that tells.
type Claim struct {
	File   string // where it stands
	Number int    // in the list of claims; 0 for one that is not in it
	Says   string
	Runs   []Run
	Rounds int // of each run; values of one round are compared with each other
	expect []expectation
	// CounterRuns are carried out for the counter-cases alone, see Counter.
	CounterRuns []Run
	// Qualified says how the claim is to be understood if some of it holds and some
	// does not.
	Qualified string
	Tests     []string         // that show it too, package and name
	About     string           // what is to be known of the experiment
	Shows     []results.Metric // of all strategies of all runs, beside what is expected
}

// Run is a command line of lockbench by a name of the claim's own.
type Run struct {
	Name string
	Line string // without the program's name, rounds and outputs
	// Generators is how many processes carry it out together, each the whole line, with
	// their reports merged; 0 is this one alone.
	Generators int
	line       int
}

// expectation is what a figure must be.
type expectation struct {
	What     string // the figure is, in words
	Figure   expression
	Is       results.Limit  // the claim holds; with By its text may be "", then it is only reported
	Opposite *results.Limit // it is contradicted; nil is wherever it does not hold
	Total    bool           // the sum of all rounds counts, not each of them
	counter  *counterCase   // nil for none
	By       string         // "interval" or "median" of the rounds; "" is each of them
	line     int
}

// Name is the claim's number, or else its file's name.
func (c Claim) Name() string {
	if c.Number > 0 {
		return strconv.Itoa(c.Number)
	}
	return strings.TrimSuffix(path.Base(c.File), path.Ext(c.File))
}

// Words are a run's arguments: the line, with what the experiment adds.
func (c Claim) Words(r Run) []string {
	return append(strings.Fields(r.Line), "--runs", strconv.Itoa(c.Rounds), "--no-baselines")
}

// Command is a run as somebody would carry it out in a shell.
func (c Claim) Command(r Run) string {
	command := "lockbench " + strings.Join(c.Words(r), " ")
	if r.Generators > 0 {
		command += fmt.Sprintf("  # %d processes in one --session, merged", r.Generators)
	}
	return command
}

//go:embed data/*.yaml
var data embed.FS

// All are the claims that come with lockbench, by number.
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
