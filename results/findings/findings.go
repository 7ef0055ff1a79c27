// Package findings turns figures into sentences. Each kind of finding has one rule. The page for a browser, the notes
// under a table, and the command advise select findings by kind and do the layout.
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
	// Strategies lists the strategies that have this finding. In a sweep, each entry also names the point of the sweep.
	// The list is empty if the finding compares several strategies or is about the whole report.
	Strategies []string

	phrase results.Phrase // the text in parts
	short  int            // the number of parts without an explanation; 0: all
}

// String returns the text of the finding, preceded by its strategies.
func (f Finding) String() string { return f.about(f.Text) }

// Short is like String, but leaves out the explanation at the end.
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

// Kind determines where a finding is shown, and with which label.
type Kind struct {
	Sort   Sort   // on the page for a browser; "" means not shown there
	Note   string // the first word of a note under a table; "" means not shown there
	Advice bool   // whether the command advise shows it
}

// Sort is the topic of a finding, under which the page for a browser shows it.
type Sort string

// The sorts are in order of importance, the worst first.
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

// Sorts returns all sorts, the worst first.
func Sorts() []Sort {
	return []Sort{NotTrusted, Unsafe, Crossed, Waiting, Cost, Caution, LeftOut, Best}
}

// rule derives the findings of one kind from the figures. It yields none if the figures that it needs are not known.
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

// The rules are in the order of the notes under a table. In this order, the rules that Brief uses are sorted by
// importance. The rules on safety also read invalid runs, because one violation is enough.
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

// mostBrief limits the number of findings that Brief returns, but no finding that must always be shown is left out.
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

// OfReport returns the findings that concern the whole report: strategies that were left out, warnings, results of
// thresholds, and the reason if the report is incomplete.
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
