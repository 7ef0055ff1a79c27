package html

import (
	"cmp"
	"slices"
)

// finding is one plain sentence that the figures bear out.
type finding struct {
	Sort sort
	Text string
}

// sort says how a finding is meant.
type sort string

// The sorts of findings, in the order in which they are shown.
const (
	untrusted sort = "not trusted" // figures that are wrong, or missing
	unsafe    sort = "unsafe"      // two held the lock, or something was lost
	crossed   sort = "threshold"
	starving  sort = "waiting"
	costly    sort = "cost"
	caution   sort = "caution" // what the figures must be read with
	best      sort = "best"
)

var order = []sort{untrusted, unsafe, crossed, starving, costly, caution, best}

// rule is what one finding needs, for each strategy of an arena or for all of
// them together. A rule that does not know says nothing.
type rule func(a arena) []finding

// each are the rules whose findings are told of every arena, together those of
// all of a family's in one, and busiest those of the busiest only: with fewer
// clients there is less of the same.
var (
	each     = []rule{invalidRuns, failedRuns}
	together = []rule{brokenClaims, unclaimedOverlaps, lateOverlaps, lostUpdates, unrecovered, leftBehind, errorsSeen}
	busiest  = []rule{starvation, overloaded, barging, costBesideBest, atTheCeiling, busyMachine, fastest, shortestWait}
)

// findings are those of all families and of the files they come from, each said
// once.
func findings(all []family, files []File) []finding {
	var found []finding
	for i, f := range all {
		for _, finding := range f.findings() {
			if len(all) > 1 {
				finding.Text = numbered(i, finding.Text)
			}
			found = append(found, finding)
		}
	}
	for _, file := range files {
		found = append(found, unfinished(file)...)
		found = append(found, thresholds(file)...)
	}
	return inOrder(found)
}

func (f family) findings() []finding {
	var found []finding
	for _, a := range f.arenas {
		found = append(found, apply(each, a)...)
	}
	found = append(found, apply(together, f.whole())...)
	found = append(found, apply(busiest, f.top())...)
	return append(found, f.herds()...)
}

func apply(rules []rule, a arena) []finding {
	var found []finding
	for _, r := range rules {
		found = append(found, r(a)...)
	}
	return found
}

// inOrder puts the worst first and leaves out what has been said.
func inOrder(found []finding) []finding {
	var once []finding
	for _, f := range found {
		if !slices.Contains(once, f) {
			once = append(once, f)
		}
	}
	slices.SortStableFunc(once, func(a, b finding) int {
		return cmp.Compare(slices.Index(order, a.Sort), slices.Index(order, b.Sort))
	})
	return once
}
