// Package doctor writes what the preflight of a run finds.
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

// schema is the version of the document.
const schema = "lockbench/doctor/1"

// Document is what the preflight of a run found.
type Document struct {
	document.Head                   // of Redis only the source, if it was not reached
	Symptoms      []results.Symptom `json:"symptoms"`
}

// Run makes the preflight of a plan. It returns the document also with an error, see lockbench.Preflight.
func Run(ctx context.Context, plan lockbench.Plan) (*Document, error) {
	d := &Document{Head: document.Begin(schema)}
	var err error
	d.Symptoms, d.Redis, err = lockbench.Preflight(ctx, plan)
	d.Environment, d.Finished = measure.Environment(), time.Now()
	return d, err
}

// In returns the names of the symptoms in a state.
func (d *Document) In(state results.State) (names []string) {
	for _, symptom := range d.Symptoms {
		if symptom.State == state {
			names = append(names, symptom.Name)
		}
	}
	return names
}

// Lay writes the document for people: a line for each symptom, and below it what to do.
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
