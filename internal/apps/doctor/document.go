package doctor

import (
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
)

// schema is the version of the document.
const schema = "lockbench/doctor/1"

// Document is what was found out about a server, and about this machine, before a measurement.
type Document struct {
	document.Head           // of Redis only the source, if it was not reached
	Symptoms      []Symptom `json:"symptoms"`
}

// Symptom is the result of one check.
type Symptom struct {
	Name  string   `json:"name"` // reachable, server, rights, …
	State State    `json:"state"`
	Says  []string `json:"says"`           // what was found, one sentence each
	Next  []string `json:"next,omitempty"` // what to do about it
}

// State rates a symptom.
type State string

// The states.
const (
	Well    State = "ok"
	Note    State = "note"    // figures are less exact, or not known
	Trouble State = "trouble" // something cannot be measured
)

// In returns the names of the symptoms in a state.
func (d *Document) In(s State) []string {
	var names []string
	for _, symptom := range d.Symptoms {
		if symptom.State == s {
			names = append(names, symptom.Name)
		}
	}
	return names
}

// Lay writes the document for people: a line for each symptom, and below it what to do.
func (d *Document) Lay(p *layout.Page) {
	for _, s := range d.Symptoms {
		label := s.Name
		if s.State == Trouble {
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
