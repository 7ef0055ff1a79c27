// Package findings says in plain words what there is to say about figures. Each finding is
// made by one rule, whoever tells it: the page for a browser, the notes under a table,
// advise. They choose findings by their kind and lay them out.
package findings

import (
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Finding is one thing that the figures bear out.
type Finding struct {
	Kind
	// Strategies are those that it is about, of a sweep with their point; none where it
	// compares several, or is about the report.
	Strategies []string
	Text       string     // in plain words, without a full stop
	Evidence   []Evidence // of what advise tells
}

// String is the finding with whom it is about.
func (f Finding) String() string {
	text := strings.TrimSuffix(f.Text, ".") // of an error's message
	if len(f.Strategies) == 0 {
		return text
	}
	return strings.Join(f.Strategies, ", ") + ": " + text
}

// Evidence is a metric of a strategy in this very run, with the ratio to another
// strategy's where the two are compared; or what a strategy claims.
type Evidence struct {
	Strategy string          `json:"strategy"`
	Metric   string          `json:"metric,omitempty"`
	Unit     results.Unit    `json:"unit,omitempty"`
	Value    *results.Figure `json:"value,omitempty"`
	Than     string          `json:"than,omitempty"`
	Ratio    *results.Ratio  `json:"ratio,omitempty"`
	Claims   []string        `json:"claims,omitempty"`
}

// Kind says who tells a finding, and under which word.
type Kind struct {
	Sort   Sort   // of the page for a browser; "" is not told there
	Note   string // that a note under a table begins with; "" is not told there
	Advice Advice // the part of advise's answer; "" is not told there
}

// Sort says how a finding is meant.
type Sort string

// The sorts, the worst first.
const (
	NotTrusted Sort = "not trusted" // figures that are wrong, or missing
	Unsafe     Sort = "unsafe"      // two held the lock, or something was lost
	Crossed    Sort = "crossed"     // a threshold
	Waiting    Sort = "waiting"
	Cost       Sort = "cost"
	Caution    Sort = "caution" // what the figures must be read with
	LeftOut    Sort = "left out"
	Best       Sort = "best"
)

// Sorts are all sorts in the order in which a page shows them.
func Sorts() []Sort {
	return []Sort{NotTrusted, Unsafe, Crossed, Waiting, Cost, Caution, LeftOut, Best}
}

// Advice is a part of what advise answers.
type Advice string

// The parts that have findings.
const (
	Cautions Advice = "caution"
	Before   Advice = "before a lock"
)

// rule makes the findings of one kind. One that does not know says nothing.
type rule struct {
	Kind
	find func([]results.Summary) []Finding
}

// Of are the findings about strategies that were measured under the same conditions, in the
// order of the rules.
func Of(all []results.Summary) []Finding {
	var found []Finding
	for _, r := range slices.Concat(trust(), safety(), waiting(), cost(), cautions(), best()) {
		for _, f := range r.find(all) {
			f.Kind = r.Kind
			found = append(found, f)
		}
	}
	return found
}
