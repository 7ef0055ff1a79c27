package doctor

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
)

// schema names the version of the document.
const schema = "lockbench/doctor/1"

// Document is what was found out about a server, and about this machine, before anything is
// measured.
type Document struct {
	document.Head           // Redis is empty but for the source where it was not reached
	Symptoms      []Symptom `json:"symptoms"`
}

// Symptom is one thing that was looked at.
type Symptom struct {
	Name  string   `json:"name"` // reachable, server, topology, rights, …
	State State    `json:"state"`
	Says  []string `json:"says"`           // what was found, a sentence each
	Next  []string `json:"next,omitempty"` // what to do about it
}

// State is what to think of a symptom.
type State string

// The states.
const (
	Well    State = "ok"
	Note    State = "note"    // figures suffer, or are not known
	Trouble State = "trouble" // something cannot be measured
	Unknown State = "unknown" // the server does not say
)

// In names the symptoms of a state.
func (d *Document) In(s State) []string {
	var names []string
	for _, symptom := range d.Symptoms {
		if symptom.State == s {
			names = append(names, symptom.Name)
		}
	}
	return names
}

// WriteJSON writes it as an indented JSON document.
func WriteJSON(w io.Writer, d *Document) error { return jsonio.Write(w, "doctor", d) }
