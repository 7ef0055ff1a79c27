// Package doctor runs the checks that precede a measurement (the preflight), and reports the symptoms that they find.
package doctor

import (
	"context"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
)

// schema is the name and the version of the JSON format of a Document.
const schema = "lockbench/doctor/1"

// Document lists the symptoms that the preflight found, each with its state and the next steps.
type Document struct {
	document.Head                   // if Redis was not reached, Redis has only its source
	Symptoms      []results.Symptom `json:"symptoms"`
}

// Run runs the preflight of a plan. If the preflight returns an error, the document lists the symptoms that were found
// before the error.
func Run(ctx context.Context, plan lockbench.Plan) (*Document, error) {
	d := &Document{Head: document.Begin(schema)}
	var err error
	d.Symptoms, d.Redis, err = lockbench.Preflight(ctx, plan)
	d.Environment, d.Finished = measure.Environment(), time.Now()
	return d, err
}

// In returns the names of the symptoms with this state.
func (d *Document) In(state results.State) (names []string) {
	for _, symptom := range d.Symptoms {
		if symptom.State == state {
			names = append(names, symptom.Name)
		}
	}
	return names
}

// Lay writes the document as text: a line for each symptom, followed by the next steps.
func (d *Document) Lay(p *layout.Page) {
	for _, s := range d.Symptoms {
		label := s.Name
		if s.State == results.Trouble {
			label = "!" + label
		}
		for i, says := range s.Says {
			if i > 0 {
				label = ""
			} else {
				says = string(s.State) + ": " + says
			}
			p.Entry(label, says)
		}
		for _, next := range s.Next {
			p.Entry("", "next: "+next)
		}
	}
}
