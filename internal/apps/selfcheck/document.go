package selfcheck

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
)

// schema is the version of the document.
const schema = "lockbench/selfcheck/1"

// Document is the result of the harness's checks of itself on one machine.
type Document struct {
	document.Head
	Checks      []Check `json:"checks"`
	Interrupted bool    `json:"interrupted,omitempty"` // stopped by the user: checks are missing
}

// Check is one case with a known answer.
type Check struct {
	Name     string    `json:"name"`
	Shows    string    `json:"shows"` // what a pass shows, one line
	Verdict  Verdict   `json:"verdict"`
	Why      []string  `json:"why,omitempty"` // reasons why it could not run, or not completely
	Seconds  float64   `json:"seconds"`
	Measured []Measure `json:"measured"`
}

// Measure is one figure of a check.
type Measure struct {
	Name    string       `json:"name"`
	Value   *float64     `json:"value"` // nil if not known
	Unit    results.Unit `json:"unit"`
	Wanted  string       `json:"wanted,omitempty"`  // "" if there is no requirement
	Verdict Verdict      `json:"verdict,omitempty"` // "" if there is no requirement
}

// Verdict is how a check ended.
type Verdict string

// The verdicts. Inconclusive means that the check could not run, or that the machine was too busy for a
// result.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Inconclusive Verdict = "inconclusive"
)

// With returns the names of the checks with this verdict.
func (d *Document) With(v Verdict) []string {
	var names []string
	for _, c := range d.Checks {
		if c.Verdict == v {
			names = append(names, c.Name)
		}
	}
	return names
}

// WriteJSON writes the document as indented JSON.
func WriteJSON(w io.Writer, d *Document) error { return jsonio.Write(w, "selfcheck", d) }
