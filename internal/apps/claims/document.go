package claims

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
)

// schema names the version of the document.
const schema = "lockbench/claims/1"

// Document is what became of what is said of Redis locks on one machine.
type Document struct {
	document.Head          // Environment and Redis are of the first run
	Title         string   `json:"title,omitempty"`
	Libraries     []string `json:"libraries,omitempty"` // that were measured: module and version
	Claims        []Result `json:"claims"`
	Interrupted   bool     `json:"interrupted,omitempty"` // stopped by the user: claims are missing
}

// Result is what became of a claim.
type Result struct {
	Name    string  `json:"name"` // its number, or its file's name
	Says    string  `json:"says"`
	Verdict Verdict `json:"verdict"`
	// Qualified says how it is to be understood, of a qualified one that says so.
	Qualified string         `json:"qualified,omitempty"`
	Why       []string       `json:"why,omitempty"` // nothing can be concluded
	Runs      []RunResult    `json:"runs"`
	Figures   []FigureResult `json:"figures"`
	Tests     []string       `json:"tests,omitempty"` // that show it too
	About     string         `json:"about,omitempty"` // what is to be known of the experiment
}

// RunResult is what became of one of a claim's runs.
type RunResult struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	Invalid bool   `json:"invalid,omitempty"` // some of its figures cannot be trusted
	Shown   *Shown `json:"shown,omitempty"`   // nil unless the claim says what to show
}

// Shown is what a run came to beside what was expected of it.
type Shown struct {
	Runs         int `json:"runs"`     // of its strategies
	LeftOut      int `json:"left_out"` // of these: they cannot be trusted, and no figure is from them
	MachineBound int `json:"hurried"`  // in which the machine and not the lock set the pace, as their labels tell
	// Strategies are the medians of their rounds.
	Strategies []ShownStrategy `json:"strategies"`
}

// ShownStrategy is a strategy of a run, of a sweep with its point.
type ShownStrategy struct {
	Name    string            `json:"name"`
	Figures []document.Figure `json:"figures"`
}

// FigureResult is what was expected of a figure and what it came to.
type FigureResult struct {
	What     string            `json:"what"`
	Figure   string            `json:"figure"` // how it is made
	Unit     results.Unit      `json:"unit"`
	Values   []*results.Figure `json:"values"` // of each round; nil where it could not be had
	Is       string            `json:"is"`
	Opposite string            `json:"opposite,omitempty"`
	Total    bool              `json:"total,omitempty"` // it is about the sum of the rounds
	Outcome  Outcome           `json:"outcome"`

	// Judged is "interval" if that is to keep the limit, by its worse end, or "median";
	// "" is each round, or their sum.
	Judged   string    `json:"judged,omitempty"`
	Interval *Interval `json:"interval,omitempty"` // if Judged, and any round is known
	Best     []string  `json:"best,omitempty"`     // who was the best of each round, where one was looked for; "" where it is not known
}

// Interval is the median of a figure's rounds and between what the true one lies.
type Interval struct {
	Median results.Figure `json:"median"`
	Low    results.Figure `json:"low"`
	High   results.Figure `json:"high"`
	Rounds int            `json:"rounds"` // that are known
	// Confidence is 0 if there are too few rounds for any: then Low and High are the
	// smallest and the largest.
	Confidence float64 `json:"confidence"`
}

// Outcome is what the values of a figure say of what was expected.
type Outcome string

// The outcomes. Partly is between what was expected and its opposite; Unclear are
// rounds that disagree, and figures that could not be had. Missed is what an interval or a
// median does not show to keep its limit; Reported is what has none.
const (
	Held         Outcome = "held"
	Contradicted Outcome = "contradicted"
	Partly       Outcome = "partly"
	Unclear      Outcome = "unclear"
	Missed       Outcome = "missed"
	Reported     Outcome = "reported"
)

// Verdict is what became of a claim.
type Verdict string

// The verdicts.
const (
	Confirmed    Verdict = "confirmed"
	Refuted      Verdict = "refuted"
	Qualified    Verdict = "qualified"
	Inconclusive Verdict = "inconclusive"
)

// Invalid names the claims with runs whose figures cannot be trusted.
func (d *Document) Invalid() []string {
	var names []string
	for _, claim := range d.Claims {
		for _, run := range claim.Runs {
			if run.Invalid {
				names = append(names, claim.Name)
				break
			}
		}
	}
	return names
}

// WriteJSON writes it as an indented JSON document.
func WriteJSON(w io.Writer, d *Document) error { return jsonio.Write(w, "claims", d) }
