package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// at names the clients where a page has several numbers of them.
func (a arena) at(c cell) string {
	if c.Point != "" {
		return c.Name + " at " + c.Point
	}
	return c.Name
}

func times(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// invalidRuns are named first of all.
func invalidRuns(a arena) []finding {
	var found []finding
	for _, c := range a.cells {
		var reasons []string
		invalid := 0
		for _, run := range c.Runs {
			if run.Valid() {
				continue
			}
			invalid++
			for _, why := range run.Invalid {
				if !slices.Contains(reasons, why) {
					reasons = append(reasons, why)
				}
			}
		}
		if invalid == 0 {
			continue
		}
		rest := ""
		if len(reasons) > 1 {
			rest = fmt.Sprintf(" (and %s)", times(int64(len(reasons)-1), "other reason", "other reasons"))
		}
		which := fmt.Sprintf("%d of its %d runs cannot be trusted and are left out", invalid, len(c.Runs))
		switch {
		case len(c.Runs) == 1:
			which = "its run cannot be trusted"
		case invalid == len(c.Runs):
			which = fmt.Sprintf("none of its %d runs can be trusted", invalid)
		case c.Suspect: // the others failed
			which = fmt.Sprintf("%d of its %d runs cannot be trusted", invalid, len(c.Runs))
		}
		found = append(found, finding{untrusted, fmt.Sprintf("%s: %s: %s%s.", a.at(c), which, strings.TrimSuffix(reasons[0], "."), rest)})
	}
	return found
}

// failedRuns ended early and were not said to be invalid.
func failedRuns(a arena) []finding {
	var found []finding
	for _, c := range a.cells {
		for _, run := range c.Runs {
			if run.Valid() && run.Failure != "" {
				found = append(found, finding{untrusted, fmt.Sprintf("%s: a run failed: %s.", a.at(c), run.Failure)})
			}
		}
	}
	return found
}

// unfinished tells what a report is missing.
func unfinished(f File) []finding {
	var found []finding
	if f.Interrupted {
		found = append(found, finding{untrusted, fmt.Sprintf("%s was interrupted: runs are missing or cut short.", f.Name)})
	}
	if f.Error != "" {
		found = append(found, finding{untrusted, fmt.Sprintf("%s ended early: %s.", f.Name, f.Error)})
	}
	if len(f.Runs) == 0 {
		found = append(found, finding{untrusted, fmt.Sprintf("%s: nothing was measured.", f.Name)})
	}
	if f.Shared != nil {
		found = append(found, finding{caution, fmt.Sprintf("%s is of one of several generators, and what it says of Redis is theirs too: lockbench merge puts them together.", f.Name)})
	}
	for _, left := range f.LeftOut {
		found = append(found, finding{caution, fmt.Sprintf("%s was left out: %s.", left.Strategy, left.Why)})
	}
	return found
}

// thresholds tell which were not kept.
func thresholds(f File) []finding {
	var found []finding
	for _, v := range f.Crossed() {
		found = append(found, finding{crossed, fmt.Sprintf("A threshold was not kept: %s.", v)})
	}
	return found
}

// brokenClaims are guarantees that a strategy gives and did not keep.
func brokenClaims(a arena) []finding {
	var found []finding
	for _, c := range a.cells {
		var broken []string
		runs := int64(0)
		for _, run := range c.Runs {
			if len(run.Safety.Broken) > 0 {
				runs++
			}
			for _, claim := range run.Safety.Broken {
				if !slices.Contains(broken, claim) {
					broken = append(broken, claim)
				}
			}
		}
		if len(broken) == 0 {
			continue
		}
		in := ""
		if len(c.Runs) > 1 {
			in = fmt.Sprintf(" in %d of %d runs", runs, len(c.Runs))
		}
		found = append(found, finding{unsafe, fmt.Sprintf("%s broke what it claims%s: %s.", a.at(c), in, strings.Join(broken, "; "))})
	}
	return found
}

// sum adds up a count over all runs of a cell, the untrusted ones too.
func (c cell) sum(count func(results.Run) int64) int64 {
	var n int64
	for _, run := range c.Runs {
		n += count(run)
	}
	return n
}

// unclaimedOverlaps happened to strategies that do not claim otherwise.
func unclaimedOverlaps(a arena) []finding {
	var found []finding
	for _, c := range a.cells {
		broken := c.sum(func(r results.Run) int64 { return int64(len(r.Safety.Broken)) })
		overlaps := c.sum(func(r results.Run) int64 { return r.Safety.Overlaps })
		if broken == 0 && overlaps > 0 {
			found = append(found, finding{unsafe, fmt.Sprintf("%s let too many hold the lock at once %s.", a.at(c), times(overlaps, "time", "times"))})
		}
	}
	return found
}

// tally says something of every cell whose runs have a count of something.
func tally(a arena, as sort, count func(results.Run) int64, say func(name string, n int64) string) []finding {
	var found []finding
	for _, c := range a.cells {
		if n := c.sum(count); n > 0 {
			found = append(found, finding{as, say(a.at(c), n)})
		}
	}
	return found
}

// known is a count that some runs do not have.
func known(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// lateOverlaps are with holders whose leases had run out.
func lateOverlaps(a arena) []finding {
	return tally(a, unsafe, func(r results.Run) int64 { return r.Safety.Late }, func(name string, n int64) string {
		return fmt.Sprintf("%s: %s a client still worked under a lease that had run out while the next one held the lock.", name, times(n, "time", "times"))
	})
}

// lostUpdates are proven by the data itself.
func lostUpdates(a arena) []finding {
	return tally(a, unsafe, func(r results.Run) int64 { return known(r.Safety.LostUpdates) }, func(name string, n int64) string {
		return fmt.Sprintf("%s lost %s of the counter that it was to protect.", name, times(n, "update", "updates"))
	})
}

// leftBehind is what a strategy should have taken with it.
func leftBehind(a arena) []finding {
	return tally(a, unsafe, func(r results.Run) int64 { return known(r.Safety.LeftoverCount) }, func(name string, n int64) string {
		return fmt.Sprintf("%s left %s on Redis that it does not declare.", name, times(n, "key, channel or connection", "keys, channels or connections"))
	})
}

// errorsSeen are those of Acquire and Release.
func errorsSeen(a arena) []finding {
	return tally(a, caution, errorsOf, func(name string, n int64) string {
		return fmt.Sprintf("%s met %s.", name, times(n, "error", "errors"))
	})
}

func errorsOf(r results.Run) int64 {
	var n int64
	for _, e := range r.Errors {
		n += e.Count
	}
	return n
}

// unrecovered are faults after which nobody got the lock any more.
func unrecovered(a arena) []finding {
	var found []finding
	for _, c := range a.cells {
		var names []string
		struck, never := map[string]int64{}, map[string]int64{}
		for _, run := range c.Runs {
			for _, fault := range run.Faults {
				name := fault.Fault.String()
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
				for _, strike := range fault.Strikes {
					struck[name]++
					if strike.RecoveryNS == nil {
						never[name]++
					}
				}
			}
		}
		for _, name := range names {
			if never[name] > 0 {
				found = append(found, finding{unsafe, fmt.Sprintf("%s: after %d of %s of %s nobody got the lock again within the run's window.",
					a.at(c), never[name], times(struck[name], "strike", "strikes"), name)})
			}
		}
	}
	return found
}
