package results

import (
	"io"
	"time"

	"github.com/lockbench/lockbench/internal/jsonio"
)

// ClaimsSchema names the version of the document.
const ClaimsSchema = "lockbench/claims/1"

// Claims is what became of what is said of Redis locks on one machine.
type Claims struct {
	Schema      string      `json:"schema"`
	Tool        Tool        `json:"tool"`
	Started     time.Time   `json:"started"`
	Finished    time.Time   `json:"finished"`
	Environment Environment `json:"environment"` // of the first run
	Redis       Redis       `json:"redis"`       // likewise
	Title       string      `json:"title,omitempty"`
	Libraries   []string    `json:"libraries,omitempty"` // that were measured: module and version
	Claims      []Claim     `json:"claims"`
	Interrupted bool        `json:"interrupted,omitempty"` // stopped by the user: claims are missing
}

// Claim is something that is said of locks, and its experiment.
type Claim struct {
	Name    string       `json:"name"` // its number, or its file's name
	Says    string       `json:"says"`
	Verdict ClaimVerdict `json:"verdict"`
	// Qualified says how it is to be understood, of a qualified one that says so.
	Qualified string        `json:"qualified,omitempty"`
	Why       []string      `json:"why,omitempty"` // nothing can be concluded
	Runs      []ClaimRun    `json:"runs"`
	Figures   []ClaimFigure `json:"figures"`
	Tests     []string      `json:"tests,omitempty"` // that show it too
	About     string        `json:"about,omitempty"` // what is to be known of the experiment
}

// ClaimRun is a command line of an experiment.
type ClaimRun struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	Invalid bool   `json:"invalid,omitempty"` // some of its figures cannot be trusted

	Shown *ClaimShown `json:"shown,omitempty"` // nil unless the claim says what to show
}

// ClaimFigure is what was expected of a figure and what it came to.
type ClaimFigure struct {
	What     string    `json:"what"`
	Figure   string    `json:"figure"` // how it is made
	Unit     Unit      `json:"unit"`
	Values   []*Figure `json:"values"` // of each round; nil where it could not be had
	Is       string    `json:"is"`
	Opposite string    `json:"opposite,omitempty"`
	Total    bool      `json:"total,omitempty"` // it is about the sum of the rounds
	Outcome  Outcome   `json:"outcome"`

	// Judged is "interval" if that is to keep the limit, by its worse end, or "median";
	// "" is each round, or their sum.
	Judged   string         `json:"judged,omitempty"`
	Interval *ClaimInterval `json:"interval,omitempty"` // if Judged, and any round is known
	Best     []string       `json:"best,omitempty"`     // who was the best of each round, where one was looked for; "" where it is not known
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

// ClaimVerdict is what became of a claim.
type ClaimVerdict string

// The verdicts.
const (
	Confirmed         ClaimVerdict = "confirmed"
	Refuted           ClaimVerdict = "refuted"
	Qualified         ClaimVerdict = "qualified"
	ClaimInconclusive ClaimVerdict = "inconclusive"
)

// Invalid names the claims with runs whose figures cannot be trusted.
func (c Claims) Invalid() []string {
	var names []string
	for _, claim := range c.Claims {
		for _, run := range claim.Runs {
			if run.Invalid {
				names = append(names, claim.Name)
				break
			}
		}
	}
	return names
}

// WriteClaimsJSON writes it as an indented JSON document.
func WriteClaimsJSON(w io.Writer, c *Claims) error {
	document := *c
	document.Schema = ClaimsSchema
	return jsonio.Write(w, "claims", document)
}
