package advise

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/workloads"
)

// schema is the version of the document.
const schema = "lockbench/advice/1"

// Document is advice: which lock to use for a given contention, and why. Everything in it was measured,
// or is claimed by a strategy.
type Document struct {
	document.Head
	Workload workloads.Spec `json:"workload"`
	Rounds   int            `json:"rounds"`
	Repeated int            `json:"repeated,omitempty"` // additional rounds, because others could not be trusted
	For      Purpose        `json:"for"`

	Headline *Headline `json:"headline,omitempty"` // the answer in short; nil without a choice

	Choice   *Choice `json:"choice"` // nil if nothing measured may be recommended
	RunnerUp *Choice `json:"runner_up,omitempty"`
	// Assumes is what must hold for the choice, if correctness is required.
	Assumes []Sentence `json:"assumes,omitempty"`
	// Before holds alternatives to a lock, and what to put before it.
	Before   []Sentence        `json:"before,omitempty"`
	Cautions []Sentence        `json:"cautions,omitempty"`
	Measured []Row             `json:"measured"`
	LeftOut  []results.LeftOut `json:"left_out,omitempty"` // what was not measured, or not completely
	Broken   []string          `json:"broken,omitempty"`   // strategies that broke a claim
	Commands []string          `json:"commands"`           // to measure it again

	Interrupted bool `json:"interrupted,omitempty"` // stopped by the user: there is no choice
}

// Purpose is the purpose of a lock.
type Purpose string

const (
	// Efficiency means that a lock saves work: two holders at once are only a nuisance.
	Efficiency Purpose = "efficiency"
	// Correctness means that without the lock data breaks.
	Correctness Purpose = "correctness"
)

// Choices that are not a strategy.
const (
	NoLock         = "no lock"
	ConsensusStore = "consensus store"
)

// Choice is a recommendation, or the next best one.
type Choice struct {
	Name    string     `json:"name"` // a strategy's, NoLock or ConsensusStore
	Summary string     `json:"summary"`
	Reasons []Sentence `json:"reasons"`
}

// Sentence is advice with its evidence: at least one figure or claim.
type Sentence struct {
	Text     string              `json:"text"`
	Evidence []findings.Evidence `json:"evidence"`
}

// Row is a measured strategy.
type Row struct {
	Name    string            `json:"name"`
	Claims  []string          `json:"claims"`
	Verdict string            `json:"verdict"` // whether they held, in a word or two
	Figures []document.Figure `json:"figures"`
	Out     string            `json:"out,omitempty"` // why it is neither the choice nor the runner-up
}

// WriteJSON writes the document as indented JSON.
func WriteJSON(w io.Writer, a *Document) error { return jsonio.Write(w, "advice", a) }
