package results

// Symptom is what one check of the preflight found out about the servers or this machine.
type Symptom struct {
	Name  string   `json:"name"` // reachable, server, limits, rights, …
	State State    `json:"state"`
	Says  []string `json:"says"`           // what was found, one sentence each
	Next  []string `json:"next,omitempty"` // what to do about it
}

// State rates a symptom. Only Trouble prevents runs.
type State string

// A symptom has one of these states.
const (
	Well    State = "ok"
	Note    State = "note"    // figures are less exact, or not known
	Trouble State = "trouble" // something cannot be measured, so no run begins
)
