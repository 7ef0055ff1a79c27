// Package findings says in plain words what figures mean. One rule makes each finding for all
// readers: the page for a browser, the notes under a table, and advise. These select findings
// by their kind and do the layout.
package findings

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// Finding is one statement that the figures support.
type Finding struct {
	Kind
	// Strategies are the strategies that it is about, in a sweep with their point; empty if it
	// compares several, or is about the report.
	Strategies []string
	Text       string // in plain words, without a full stop
}

// String returns the text, with the strategies in front.
func (f Finding) String() string {
	text := strings.TrimSuffix(f.Text, ".") // an error's message may end with one
	if len(f.Strategies) == 0 {
		return text
	}
	return strings.Join(f.Strategies, ", ") + ": " + text
}

// Kind says who shows a finding, and under which word.
type Kind struct {
	Sort   Sort   // on the page for a browser; "" means not shown there
	Note   string // the first word of a note under a table; "" means not shown there
	Advice bool   // in the answer of advise
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

// rule makes the findings of one kind; it makes none if the figures are not known.
type rule struct {
	Kind
	brief brevity
	find  func([]results.Summary) []Finding
}

// brevity says whether Brief has the findings of a rule.
type brevity int

const (
	omitted brevity = iota
	ifRoom          // where there is room
	always          // nothing unsafe is left out, and no waits that were given up
)

// rules are in the order of the notes under a table, those of Brief with the most important first. The rules on
// safety also read invalid runs: one violation is enough.
var rules = []rule{
	{Kind{NotTrusted, "! INVALID", true}, omitted, each(invalid)},
	{Kind{NotTrusted, "! FAILED", true}, omitted, each(failed)},
	{Kind{Sort: Caution, Note: "missed"}, omitted, each(missed)},

	{Kind{Sort: Unsafe, Note: "! BROKEN"}, always, each(broken)},
	{Kind{Sort: Unsafe}, always, each(unclaimedOverlaps)},
	{Kind{Sort: Unsafe}, always, each(counted("overlaps_after_expiry", "time",
		"%s a client still worked under a lease that had run out while the next one held the lock"))},
	{Kind{Sort: Unsafe}, always, each(counted("lost_updates", "update",
		"%s of the counter that it was to protect got lost"))},
	{Kind{Sort: Unsafe}, always, each(unrecovered)},
	{Kind{Sort: Unsafe, Note: "left"}, always, each(leftovers)},
	{Kind{Sort: Unsafe, Note: "no token"}, always, each(withoutTokens)},
	{Kind{Sort: Unsafe, Note: "unsafe"}, omitted, each(byDesign)},

	{Kind{Waiting, "gave up", true}, always, gaveUp},
	{Kind{Sort: Waiting, Note: "label"}, ifRoom, each(labels(overloaded))},
	{Kind{Sort: Waiting}, ifRoom, busiest(served)},
	{Kind{Sort: Best}, ifRoom, busiest(ahead)},
	{Kind{Sort: Best}, omitted, busiest(each(atTheCeiling))},
	{Kind{Sort: Cost}, ifRoom, herds},
	{Kind{Sort: Cost}, ifRoom, busiest(cheapest)},

	{Kind{Sort: Caution, Note: "errors"}, omitted, each(errorsMet)},
	{Kind{Caution, "label", true}, omitted, each(labels(results.SetsThePace))},
	{Kind{Sort: Caution, Note: "label"}, omitted, each(labels(otherLabel))},
	{Kind{Sort: Caution, Note: "too few"}, omitted, each(tooFew)},
	{Kind{Sort: Caution, Note: "stood still"}, omitted, each(stalled)},
	{Kind{Sort: Caution, Note: "holds"}, omitted, otherHolds},
	{Kind{Sort: Caution, Note: "holds"}, omitted, unequalHolds},
}

// Of returns the findings about strategies that were measured under the same conditions, in the
// order of the rules.
func Of(all []results.Summary) []Finding {
	var found []Finding
	for _, r := range rules {
		found = append(found, r.of(all)...)
	}
	return found
}

// mostBrief is the largest number of findings of Brief, unless it always has more.
const mostBrief = 3

// Brief returns the findings to read first: all that was not safe, the waits that were given up, which clients a lock
// did not serve, which lock was the fastest and whether that is certain, and what it cost Redis.
func Brief(all []results.Summary) []Finding {
	var found []Finding
	most := mostBrief
	for _, r := range rules {
		if r.brief == omitted {
			continue
		}
		found = append(found, r.of(all)...)
		if r.brief == always {
			most = max(most, len(found))
		}
	}
	return found[:min(len(found), most)]
}

func (r rule) of(all []results.Summary) []Finding {
	found := r.find(all)
	for i := range found {
		found[i].Kind = r.Kind
	}
	return found
}

// OfReport returns the findings about a report apart from its figures: what is missing, and the
// thresholds.
func OfReport(r *results.Report) []Finding {
	var found []Finding
	add := func(kind Kind, text string, strategies ...string) {
		found = append(found, Finding{Kind: kind, Text: text, Strategies: strategies})
	}
	for _, left := range r.LeftOut {
		add(Kind{Sort: LeftOut, Note: "left out"}, left.Why, left.Strategy)
	}
	for _, warning := range r.Warnings {
		add(Kind{Note: "warning"}, warning)
	}
	for _, v := range r.Thresholds {
		if v.Passed {
			add(Kind{Note: "passed"}, v.String())
		} else {
			add(Kind{Sort: Crossed, Note: "! CROSSED"}, v.String())
		}
	}
	windows := 0
	for _, run := range r.Runs {
		if run.WindowNS > 0 {
			windows++
		}
	}
	measured := fmt.Sprintf("%d of %s measured", windows, words.Count(len(r.Strategies)*r.Rounds, "run"))
	if r.Interrupted {
		add(Kind{Sort: NotTrusted, Note: "! STOPPED"}, "interrupted: "+measured)
	}
	if r.Error != "" {
		add(Kind{Sort: NotTrusted, Note: "! ERROR"}, fmt.Sprintf("%s (%s)", r.Error, measured))
	}
	if len(r.Runs) == 0 {
		add(Kind{Sort: NotTrusted, Note: "! EMPTY"}, "nothing was measured")
	}
	return found
}
