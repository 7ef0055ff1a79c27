// Package findings turns figures into sentences. Each finding comes from one rule, for all readers: the page for a
// browser, the notes under a table, and the command advise. The readers select findings by their kind and do the
// layout.
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
	results.Remark // in plain words, without a full stop
	// Strategies are the strategies that it is about, in a sweep with their point; empty if it
	// compares several, or is about the report.
	Strategies []string

	phrase results.Phrase // the text in parts
	short  int            // the number of parts without an explanation; 0: all
}

// String returns the text, with the strategies in front.
func (f Finding) String() string { return f.about(f.Text) }

// Short is String without the explanation at its end.
func (f Finding) Short() string {
	if f.short == 0 {
		return f.String()
	}
	return f.about(f.phrase[:f.short].String())
}

func (f Finding) about(text string) string {
	text = strings.TrimSuffix(text, ".") // an error's message may end with one
	if len(f.Strategies) == 0 {
		return text
	}
	return strings.Join(f.Strategies, ", ") + ": " + text
}

// Kind determines which readers show a finding, and under which word.
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
	Crossed    Sort = "crossed"     // a threshold was crossed
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
	code  results.Code // of the findings; "" if each has its own
	brief brevity
	find  func([]results.Summary) []Finding
}

// brevity determines whether Brief includes the findings of a rule.
type brevity int

const (
	omitted brevity = iota
	ifRoom          // where there is room
	always          // findings on safety and on waits that timed out are never left out
)

// rules are in the order of the notes under a table, those of Brief with the most important first. The rules on
// safety also read invalid runs: one violation is enough.
var rules = []rule{
	{Kind{NotTrusted, "! INVALID", true}, results.RunsNotTrusted, omitted, each(invalid)},
	{Kind{NotTrusted, "! FAILED", true}, results.RunsFailed, omitted, each(failed)},
	{Kind{Sort: Caution, Note: "missed"}, results.FaultsMissed, omitted, each(missed)},

	{Kind{Sort: Unsafe, Note: "! BROKEN"}, results.ClaimsBroken, always, each(broken)},
	{Kind{Sort: Unsafe}, results.Unclaimed, always, each(unclaimedOverlaps)},
	{Kind{Sort: Unsafe}, results.LateHolders, always, each(counted("overlaps_after_expiry", "time",
		"%s a client still worked under an expired lease while the next client held the lock"))},
	{Kind{Sort: Unsafe}, results.CounterLost, always, each(lostUpdates)},
	{Kind{Sort: Unsafe}, results.NotRecovered, always, each(unrecovered)},
	{Kind{Sort: Unsafe, Note: "left"}, results.KeysLeft, always, each(leftovers)},
	{Kind{Sort: Unsafe, Note: "no token"}, results.NoTokens, always, each(withoutTokens)},
	{Kind{Sort: Unsafe, Note: "unsafe"}, results.UnsafeByDesign, omitted, each(byDesign)},

	{Kind{Waiting, "timed out", true}, results.WaitsGivenUp, always, gaveUp},
	{Kind{Sort: Waiting, Note: "label"}, "", ifRoom, each(labels(overloaded))},
	{Kind{Sort: Waiting}, results.ClientsServed, ifRoom, busiest(served)},
	{Kind{Sort: Best}, results.FirstOf, ifRoom, busiest(ahead)},
	{Kind{Sort: Best}, results.AtItsCeiling, omitted, busiest(each(atTheCeiling))},
	{Kind{Sort: Cost}, results.CommandsGrow, ifRoom, herds},
	{Kind{Sort: Cost}, results.CommandsCompared, ifRoom, busiest(cheapest)},

	{Kind{Sort: Caution, Note: "errors"}, results.ErrorsMet, omitted, each(errorsMet)},
	{Kind{Caution, "label", true}, "", omitted, each(labels(results.Code.SetsThePace))},
	{Kind{Sort: Caution, Note: "label"}, "", omitted, each(labels(otherLabel))},
	{Kind{Sort: Caution, Note: "too few"}, results.TooFew, omitted, each(tooFew)},
	{Kind{Sort: Caution, Note: "stood still"}, results.LockStoodStill, omitted, each(stalled)},
	{Kind{Sort: Caution, Note: "holds"}, results.HoldsNotAsked, omitted, otherHolds},
	{Kind{Sort: Caution, Note: "holds"}, results.HoldsUnequal, omitted, unequalHolds},
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

// mostBrief is the largest number of findings of Brief, unless there are more that it never leaves out.
const mostBrief = 3

// Brief returns the findings to read first: everything unsafe, the waits that timed out, the clients that a lock did
// not serve, the fastest lock with its lead, and the cost for Redis.
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
		if found[i].Kind = r.Kind; r.code != "" {
			found[i].Code, found[i].Severity = r.code, r.code.Severity()
		}
	}
	return found
}

// OfReport returns the findings about a report apart from its figures: what is missing, and the
// thresholds.
func OfReport(r *results.Report) []Finding {
	var found []Finding
	add := func(kind Kind, remark results.Remark, strategies ...string) {
		found = append(found, Finding{Kind: kind, Remark: remark, Strategies: strategies, phrase: remark.Phrase()})
	}
	for _, left := range r.LeftOut {
		add(Kind{Sort: LeftOut, Note: "left out"}, left.Why, left.Strategy)
	}
	for _, warning := range r.Warnings {
		add(Kind{Note: "warning"}, warning)
	}
	for _, v := range r.Thresholds {
		if v.Passed {
			add(Kind{Note: "passed"}, results.ThresholdPassed.Remark(v))
		} else {
			add(Kind{Sort: Crossed, Note: "! CROSSED"}, results.ThresholdCrossed.Remark(v))
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
		add(Kind{Sort: NotTrusted, Note: "! STOPPED"}, results.Interrupted.Remark(measured))
	}
	if r.Error != "" {
		add(Kind{Sort: NotTrusted, Note: "! ERROR"}, results.ReportError.Remark(r.Error, measured))
	}
	if len(r.Runs) == 0 {
		add(Kind{Sort: NotTrusted, Note: "! EMPTY"}, results.NothingMeasured.Remark())
	}
	return found
}
