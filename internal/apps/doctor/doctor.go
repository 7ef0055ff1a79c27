// Package doctor runs the preflight of a run and reports its findings.
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

// schema is the value of Document.Schema.
const schema = "lockbench/doctor/1"

// Document has the findings of the preflight of a run.
type Document struct {
	document.Head                   // if Redis was not reached, Redis has only its source
	Symptoms      []results.Symptom `json:"symptoms"`
}

// Run runs the preflight of a plan. The document is also valid if there is an error; see lockbench.Preflight.
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

// Lay writes the document as text: a line for each symptom, followed by what to do about it.
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
