package claims

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/results"
)

// schema is the version of the document.
const schema = "lockbench/claims/1"

// Document is the result of the claims on one machine.
type Document struct {
	document.Head          // Environment and Redis are those of the first run
	Title         string   `json:"title,omitempty"`
	Libraries     []string `json:"libraries,omitempty"` // measured ones, with module and version
	Claims        []Result `json:"claims"`
	Interrupted   bool     `json:"interrupted,omitempty"` // stopped by the user: claims are missing
}

// Result is the result of a claim.
type Result struct {
	Name      string         `json:"name"` // its number, or its file's name
	Says      Text           `json:"says"`
	Verdict   Verdict        `json:"verdict"`
	Qualified Text           `json:"qualified,omitempty"` // how to read a qualified claim, if the claim says so
	Why       []string       `json:"why,omitempty"`       // reasons why it is inconclusive
	Runs      []RunResult    `json:"runs"`
	Figures   []FigureResult `json:"figures"`
	Tests     []Text         `json:"tests,omitempty"` // tests that show it too
	About     Text           `json:"about,omitempty"` // what to know about the experiment
}

// RunResult is the result of one of a claim's runs.
type RunResult struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	Invalid bool   `json:"invalid,omitempty"` // some of its figures cannot be trusted
	Shown   *Shown `json:"shown,omitempty"`   // nil unless the claim says what to show
}

// Shown is a run's figures in addition to the expected ones.
type Shown struct {
	Runs         int `json:"runs"`     // of its strategies
	LeftOut      int `json:"left_out"` // of these, runs that cannot be trusted; no figure uses them
	MachineBound int `json:"hurried"`  // those in which the machine, not the lock, limited the speed, by their labels
	// Strategies holds the medians of their rounds.
	Strategies []ShownStrategy `json:"strategies"`
}

// ShownStrategy is a strategy of a run; in a sweep, with its point.
type ShownStrategy struct {
	Name    string            `json:"name"`
	Figures []document.Figure `json:"figures"`
}

// FigureResult is an expected figure and its result.
type FigureResult struct {
	What   Text              `json:"what"`
	Figure string            `json:"figure"` // the expression
	Unit   results.Unit      `json:"unit"`
	Values []*results.Figure `json:"values"` // of each round; nil if not known
	Limits
	Outcome  Outcome   `json:"outcome"`
	Interval *Interval `json:"interval,omitempty"` // if Limits.By, and any round is known
	// Best is the best strategy of each round, if the figure has a best; "" if it is not known.
	Best    []string       `json:"best,omitempty"`
	Counter *CounterResult `json:"counter,omitempty"` // nil unless counter-cases were measured
}

// CounterResult is the result of a figure in its counter-case, which What describes.
type CounterResult struct {
	FigureResult
	AsItMust bool `json:"as_it_must"` // it is on the other side of the limit
}

// Interval is the median of a figure's rounds with its interval.
type Interval struct {
	Median results.Figure `json:"median"`
	Low    results.Figure `json:"low"`
	High   results.Figure `json:"high"`
	Rounds int            `json:"rounds"` // with a known value
	// Confidence is 0 if there are too few rounds: then Low and High are the smallest and the largest
	// value.
	Confidence float64 `json:"confidence"`
}

// Outcome says whether the values of a figure are as expected.
type Outcome string

// The outcomes. Partly is between the expectation and its opposite. Unclear means rounds that disagree, or
// unknown figures. Missed means that an interval or a median does not show that it keeps its limit.
// Reported means that there is no limit.
const (
	Held         Outcome = "held"
	Contradicted Outcome = "contradicted"
	Partly       Outcome = "partly"
	Unclear      Outcome = "unclear"
	Missed       Outcome = "missed"
	Reported     Outcome = "reported"
)

// Verdict is the result of a claim in one word.
type Verdict string

// The verdicts.
const (
	Confirmed    Verdict = "confirmed"
	Refuted      Verdict = "refuted"
	Qualified    Verdict = "qualified"
	Inconclusive Verdict = "inconclusive"
)

// Invalid returns the claims with runs that cannot be trusted.
func (d *Document) Invalid() []string {
	var names []string
	for _, claim := range d.Claims {
		if slices.ContainsFunc(claim.Runs, func(r RunResult) bool { return r.Invalid }) {
			names = append(names, claim.Name)
		}
	}
	return names
}

// CounterCases returns the number of measured counter-cases, and those that are not as they must be.
func (d *Document) CounterCases() (measured int, failed []string) {
	for _, claim := range d.Claims {
		for _, f := range claim.Figures {
			if f.Counter == nil {
				continue
			}
			if measured++; !f.Counter.AsItMust {
				failed = append(failed, fmt.Sprintf("claim %s, %s", claim.Name, f.What))
			}
		}
	}
	return measured, failed
}
