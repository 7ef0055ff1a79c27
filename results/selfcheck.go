package results

import (
	"io"
	"time"

	"github.com/lockbench/lockbench/internal/jsonio"
)

// SelfcheckSchema names the version of the document.
const SelfcheckSchema = "lockbench/selfcheck/1"

// Selfcheck is what the harness found out about itself on one machine.
type Selfcheck struct {
	Schema      string      `json:"schema"`
	Tool        Tool        `json:"tool"`
	Started     time.Time   `json:"started"`
	Finished    time.Time   `json:"finished"`
	Environment Environment `json:"environment"`
	Redis       Redis       `json:"redis"`
	Checks      []Check     `json:"checks"`
	Interrupted bool        `json:"interrupted,omitempty"` // stopped by the user: checks are missing
}

// Check is one case whose answer is known from elsewhere.
type Check struct {
	Name     string    `json:"name"`
	Shows    string    `json:"shows"` // what a pass shows, one line
	Verdict  Finding   `json:"verdict"`
	Why      []string  `json:"why,omitempty"` // it could not be carried out, or not to its end
	Seconds  float64   `json:"seconds"`
	Measured []Measure `json:"measured"`
}

// Measure is one figure of a check.
type Measure struct {
	Name    string   `json:"name"`
	Value   *float64 `json:"value"` // nil if it could not be had
	Unit    Unit     `json:"unit"`
	Wanted  string   `json:"wanted,omitempty"`  // "" where it only informs
	Verdict Finding  `json:"verdict,omitempty"` // likewise
}

// Finding is how a check ended.
type Finding string

// The verdicts. A check is Inconclusive when it could not be carried out, or the
// machine was too restless to tell: neither a proof nor a refutation.
const (
	Pass         Finding = "pass"
	Fail         Finding = "fail"
	Inconclusive Finding = "inconclusive"
)

// With names the checks that ended so.
func (s Selfcheck) With(v Finding) []string {
	var names []string
	for _, c := range s.Checks {
		if c.Verdict == v {
			names = append(names, c.Name)
		}
	}
	return names
}

// WriteSelfcheckJSON writes it as an indented JSON document.
func WriteSelfcheckJSON(w io.Writer, s *Selfcheck) error {
	document := *s
	document.Schema = SelfcheckSchema
	return jsonio.Write(w, "selfcheck", document)
}
