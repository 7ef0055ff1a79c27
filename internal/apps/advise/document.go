package advise

import (
	"io"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// schema is the version of the document.
const schema = "lockbench/advice/1"

// Document is advice: which lock to use for a given contention, and the figures it rests on.
type Document struct {
	document.Head
	Workload workloads.Spec `json:"workload"`
	Rounds   int            `json:"rounds"`
	Repeated int            `json:"repeated,omitempty"` // additional rounds, because others could not be trusted
	For      Purpose        `json:"for"`

	Choice *Choice `json:"choice"` // nil if nothing measured may be recommended
	// Ranking has the measured locks, the best first, then those that may not be recommended.
	Ranking  []Row             `json:"ranking"`
	Notes    []Sentence        `json:"notes,omitempty"`    // alternatives to a lock, and cautions
	LeftOut  []results.LeftOut `json:"left_out,omitempty"` // of the named strategies, what was not measured
	Broken   []string          `json:"broken,omitempty"`   // strategies that broke a claim
	Commands []string          `json:"commands"`           // to measure it again

	Interrupted bool `json:"interrupted,omitempty"` // stopped by the user: there is no choice
}

// Purpose is the purpose of a lock.
type Purpose string

const (
	// Efficiency means that a lock saves work: two holders at once only waste some.
	Efficiency Purpose = "efficiency"
	// Correctness means that without the lock data breaks.
	Correctness Purpose = "correctness"
)

// Choices that are not a strategy.
const (
	NoLock         = "no lock"
	ConsensusStore = "consensus store"
)

// Choice is what to use.
type Choice struct {
	Name    string `json:"name"` // a strategy's, NoLock or ConsensusStore
	Summary string `json:"summary"`
	// Take is what to import: a package, or a library's call. It is empty if no lock is recommended.
	Take    string `json:"take,omitempty"`
	RightIf string `json:"right_if"`
	// Library is the best measured lock that is, or has the same format as, a third-party library; empty
	// if there is none, or if it is the choice itself.
	Library *Library `json:"library,omitempty"`
}

// Library is a third-party lock and the strategy that was measured for it.
type Library struct {
	Strategy string `json:"strategy"`
	strategies.Library
}

// Sentence is a note with its evidence: at least one figure or claim.
type Sentence struct {
	Text     string              `json:"text"`
	Evidence []findings.Evidence `json:"evidence"`
}

// Row is a measured strategy.
type Row struct {
	Name    string   `json:"name"`
	Claims  []string `json:"claims"`
	Verdict string   `json:"verdict"` // whether they held, in a word or two
	Figures []Figure `json:"figures"`
	Why     string   `json:"why,omitempty"` // why it is not first, or may not be recommended
}

// Figure is a metric of a strategy, compared with that of the best lock.
type Figure struct {
	document.Figure
	// Ratio says how many times as good the best lock is, over paired rounds; nil if that is not known.
	Ratio *results.Ratio `json:"ratio,omitempty"`
}

// WriteJSON writes the document as indented JSON.
func WriteJSON(w io.Writer, a *Document) error { return jsonio.Write(w, "advice", a) }
