package doctor

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
)

// schema is the version of the document.
const schema = "lockbench/doctor/1"

// Document is what was found out about a server, and about this machine, before a measurement.
type Document struct {
	document.Head           // of Redis only the source, if it was not reached
	Symptoms      []Symptom `json:"symptoms"`
}

// Symptom is the result of one examination.
type Symptom struct {
	Name  string   `json:"name"` // reachable, server, topology, rights, …
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
	Unknown State = "unknown" // the server does not say
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

// WriteJSON writes the document as indented JSON.
func WriteJSON(w io.Writer, d *Document) error { return jsonio.Write(w, "doctor", d) }
