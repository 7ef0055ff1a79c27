package advise

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/workloads"
)

// schema names the version of the document.
const schema = "lockbench/advice/1"

// Document is advice: which lock to take under somebody's contention, and what made it that
// one. What it says it has measured itself, or a strategy claims it.
type Document struct {
	document.Head
	Workload workloads.Spec `json:"workload"`
	Rounds   int            `json:"rounds"`
	Repeated int            `json:"repeated,omitempty"` // rounds beside these, because others could not be trusted
	For      Purpose        `json:"for"`

	Headline *Headline `json:"headline,omitempty"` // the answer in short; nil without a choice

	Choice   *Choice `json:"choice"` // nil if nothing that was measured may be recommended
	RunnerUp *Choice `json:"runner_up,omitempty"`
	// Assumes is what the choice takes for granted, where correctness is asked for.
	Assumes []Sentence `json:"assumes,omitempty"`
	// Before is what to think of before a lock, or to put before it.
	Before   []Sentence        `json:"before,omitempty"`
	Cautions []Sentence        `json:"cautions,omitempty"`
	Measured []Row             `json:"measured"`
	LeftOut  []results.LeftOut `json:"left_out,omitempty"` // what was not measured, or not to the end
	Broken   []string          `json:"broken,omitempty"`   // strategies that did not keep what they claim
	Commands []string          `json:"commands"`           // that measure it again

	Interrupted bool `json:"interrupted,omitempty"` // stopped by the user: there is no choice
}

// Purpose is what a lock is for.
type Purpose string

const (
	// Efficiency is a lock that saves work: two holders at once are a nuisance.
	Efficiency Purpose = "efficiency"
	// Correctness is a lock without which data breaks.
	Correctness Purpose = "correctness"
)

// What can be chosen beside a strategy, by the name it then has.
const (
	NoLock         = "no lock"
	ConsensusStore = "consensus store"
)

// Choice is what is recommended, or would be without the first choice.
type Choice struct {
	Name    string     `json:"name"` // a strategy's, NoLock or ConsensusStore
	Summary string     `json:"summary"`
	Reasons []Sentence `json:"reasons"`
}

// Sentence is advice with what it rests on: a figure or a claim, at least one.
type Sentence struct {
	Text     string              `json:"text"`
	Evidence []findings.Evidence `json:"evidence"`
}

// Row is a strategy that was measured.
type Row struct {
	Name    string            `json:"name"`
	Claims  []string          `json:"claims"`
	Verdict string            `json:"verdict"` // whether they held, in a word or two
	Figures []document.Figure `json:"figures"`
	Out     string            `json:"out,omitempty"` // why it is neither choice nor runner-up
}

// WriteJSON writes it as an indented JSON document.
func WriteJSON(w io.Writer, a *Document) error { return jsonio.Write(w, "advice", a) }
