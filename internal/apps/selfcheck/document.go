package selfcheck

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
)

// schema names the version of the document.
const schema = "lockbench/selfcheck/1"

// Document is what the harness found out about itself on one machine.
type Document struct {
	document.Head
	Checks      []Check `json:"checks"`
	Interrupted bool    `json:"interrupted,omitempty"` // stopped by the user: checks are missing
}

// Check is one case whose answer is known from elsewhere.
type Check struct {
	Name     string    `json:"name"`
	Shows    string    `json:"shows"` // what a pass shows, one line
	Verdict  Verdict   `json:"verdict"`
	Why      []string  `json:"why,omitempty"` // it could not be carried out, or not to its end
	Seconds  float64   `json:"seconds"`
	Measured []Measure `json:"measured"`
}

// Measure is one figure of a check.
type Measure struct {
	Name    string       `json:"name"`
	Value   *float64     `json:"value"` // nil if it could not be had
	Unit    results.Unit `json:"unit"`
	Wanted  string       `json:"wanted,omitempty"`  // "" where it only informs
	Verdict Verdict      `json:"verdict,omitempty"` // likewise
}

// Verdict is how a check ended.
type Verdict string

// The verdicts. A check is Inconclusive when it could not be carried out, or the
// machine was too restless to tell: neither a proof nor a refutation.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Inconclusive Verdict = "inconclusive"
)

// With names the checks that ended so.
func (d *Document) With(v Verdict) []string {
	var names []string
	for _, c := range d.Checks {
		if c.Verdict == v {
			names = append(names, c.Name)
		}
	}
	return names
}

// WriteJSON writes it as an indented JSON document.
func WriteJSON(w io.Writer, d *Document) error { return jsonio.Write(w, "selfcheck", d) }
