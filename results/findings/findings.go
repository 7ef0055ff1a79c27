// Package findings says in plain words what figures mean. One rule makes each finding for all
// readers: the page for a browser, the notes under a table, and advise. These select findings
// by their kind and do the layout.
package findings

import (
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Finding is one statement that the figures support.
type Finding struct {
	Kind
	// Strategies are the strategies that it is about, in a sweep with their point; empty if it
	// compares several, or is about the report.
	Strategies []string
	Text       string     // in plain words, without a full stop
	Evidence   []Evidence // for advise
}

// String returns the text, with the strategies in front.
func (f Finding) String() string {
	text := strings.TrimSuffix(f.Text, ".") // an error's message may end with one
	if len(f.Strategies) == 0 {
		return text
	}
	return strings.Join(f.Strategies, ", ") + ": " + text
}

// Evidence is a metric of a strategy in this run, with the ratio to another strategy's if the two
// are compared; or what a strategy claims.
type Evidence struct {
	Strategy string          `json:"strategy"`
	Metric   string          `json:"metric,omitempty"`
	Unit     results.Unit    `json:"unit,omitempty"`
	Value    *results.Figure `json:"value,omitempty"`
	Than     string          `json:"than,omitempty"`
	Ratio    *results.Ratio  `json:"ratio,omitempty"`
	Claims   []string        `json:"claims,omitempty"`
}

// Kind says who shows a finding, and under which word.
type Kind struct {
	Sort   Sort   // on the page for a browser; "" means not shown there
	Note   string // the first word of a note under a table; "" means not shown there
	Advice Advice // the part of advise's answer; "" means not shown there
}

// Sort is the kind of statement of a finding.
type Sort string

// The sorts, the worst first.
const (
	NotTrusted Sort = "not trusted" // figures that are wrong or missing
	Unsafe     Sort = "unsafe"      // two clients held the lock, or something was lost
	Crossed    Sort = "crossed"     // a threshold
	Waiting    Sort = "waiting"
	Cost       Sort = "cost"
	Caution    Sort = "caution" // needed to read the figures
	LeftOut    Sort = "left out"
	Best       Sort = "best"
)

// Sorts returns all sorts in the order of the page.
func Sorts() []Sort {
	return []Sort{NotTrusted, Unsafe, Crossed, Waiting, Cost, Caution, LeftOut, Best}
}

// Advice is a part of advise's answer.
type Advice string

// The parts that have findings.
const (
	Cautions Advice = "caution"
	Before   Advice = "before a lock"
)

// rule makes the findings of one kind; it makes none if the figures are not known.
type rule struct {
	Kind
	find func([]results.Summary) []Finding
}

// Of returns the findings about strategies that were measured under the same conditions, in the
// order of the rules.
func Of(all []results.Summary) []Finding {
	var found []Finding
	for _, r := range slices.Concat(trust(), safety(perStrategy), waiting(), cost(), cautions(), best()) {
		for _, f := range r.find(all) {
			f.Kind = r.Kind
			found = append(found, f)
		}
	}
	return found
}
