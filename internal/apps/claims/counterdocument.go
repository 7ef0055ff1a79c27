package claims

import (
	"io"
	"slices"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
)

// counterSchema is the version of the document.
const counterSchema = "lockbench/countercases/1"

// CounterDocument is the result of the claims' counter-cases on one machine.
type CounterDocument struct {
	document.Head               // Environment and Redis are those of the first run
	Cases         []CounterCase `json:"cases"`
	Interrupted   bool          `json:"interrupted,omitempty"` // stopped by the user: cases are missing
}

// CounterCase is a figure of a claim, and the same figure in its counter-case.
type CounterCase struct {
	Claim    string       `json:"claim"` // its number, or its file's name
	Without  FigureResult `json:"without"`
	With     FigureResult `json:"with"` // its What describes the counter-case
	AsItMust bool         `json:"as_it_must"`
	Why      []string     `json:"why,omitempty"` // reasons why a run of the claim is inconclusive
}

// CounterCases pairs the results of Countered claims.
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

// opposite says whether a figure and its counter-case are on different sides of the limit. If the figure is
// between the limits, the counter-case must be on either side.
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

// Failed returns the cases that are not as they must be.
func (d *CounterDocument) Failed() []CounterCase {
	return slices.DeleteFunc(slices.Clone(d.Cases), func(c CounterCase) bool { return c.AsItMust })
}

// WriteCounterJSON writes the document as indented JSON.
func WriteCounterJSON(w io.Writer, d *CounterDocument) error {
	return jsonio.Write(w, "counter-cases", d)
}
