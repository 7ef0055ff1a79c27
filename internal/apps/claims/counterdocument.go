package claims

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
)

// counterSchema names the version of the document.
const counterSchema = "lockbench/countercases/1"

// CounterDocument is what became of the claims' counter-cases on one machine.
type CounterDocument struct {
	document.Head               // Environment and Redis are of the first run
	Cases         []CounterCase `json:"cases"`
	Interrupted   bool          `json:"interrupted,omitempty"` // stopped by the user: cases are missing
}

// CounterCase is a figure of a claim, and the same figure with its counter-case.
type CounterCase struct {
	Claim    string       `json:"claim"` // its number, or its file's name
	Without  FigureResult `json:"without"`
	With     FigureResult `json:"with"` // its What says what the counter-case is
	AsItMust bool         `json:"as_it_must"`
	Why      []string     `json:"why,omitempty"` // nothing can be concluded from a run of the claim
}

// CounterCases makes pairs of what testing Countered claims came to.
func CounterCases(d *Document) *CounterDocument {
	c := &CounterDocument{Head: d.Head, Cases: []CounterCase{}, Interrupted: d.Interrupted}
	c.Schema = counterSchema
	for _, claim := range d.Claims {
		half := len(claim.Figures) / 2
		for i, without := range claim.Figures[:half] {
			with := claim.Figures[half+i]
			c.Cases = append(c.Cases, CounterCase{
				Claim: claim.Name, Without: without, With: with, AsItMust: opposite(without.Outcome, with.Outcome), Why: claim.Why,
			})
		}
	}
	return c
}

// opposite says whether a figure and its counter-case came out on different sides of the
// limit. Of a figure that is between them, the counter-case has to be on either.
func opposite(without, with Outcome) bool {
	against := func(o Outcome) bool { return o == Contradicted || o == Missed }
	switch {
	case without == Held:
		return against(with)
	case against(without):
		return with == Held
	case without == Partly:
		return with == Held || against(with)
	}
	return false
}

// Failed are the cases that did not come out as they must.
func (d *CounterDocument) Failed() []CounterCase {
	var all []CounterCase
	for _, c := range d.Cases {
		if !c.AsItMust {
			all = append(all, c)
		}
	}
	return all
}

// WriteCounterJSON writes it as an indented JSON document.
func WriteCounterJSON(w io.Writer, d *CounterDocument) error {
	return jsonio.Write(w, "counter-cases", d)
}
