package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// equalHolds is the largest ratio of two mean holds at which throughputs are compared directly. It is also the largest
// ratio of a mean hold to the requested hold at which the two count as equal.
const equalHolds = 1.03

func invalid(s results.Summary) []Finding {
	reasons, n := collect(s, func(r results.Run) []results.Phrase { return phrases(r.Invalid) })
	which := results.Phrasef("%s of its %s runs cannot be trusted", n, len(s.Runs))
	switch {
	case n == 0:
		return nil
	case len(s.Runs) == 1:
		which = results.Phrasef("its run cannot be trusted")
	case n == len(s.Runs):
		which = results.Phrasef("none of its %s runs can be trusted", n)
	case !s.Invalid: // otherwise the other runs failed
		which = results.Phrasef("%s and are left out", which)
	}
	return say("%s: %s", which, once(reasons))
}

// failed reports the valid runs that an error ended early.
func failed(s results.Summary) []Finding {
	why, n := collect(s, func(r results.Run) []results.Phrase {
		if r.Usable() || !r.Valid() {
			return nil
		}
		return []results.Phrase{results.Phrasef("%s", r.Failure)}
	})
	if n == 0 {
		return nil
	}
	return say("%s failed: %s", results.CountOf(n, "run"), once(why))
}

// missed reports faults that were not injected.
func missed(s results.Summary) []Finding {
	why, _ := collect(s, func(r results.Run) (all []results.Phrase) {
		for _, fault := range r.Faults {
			for _, why := range fault.Missed {
				all = append(all, results.Phrasef("%s: %s", fault.Fault.Name, why))
			}
		}
		return all
	})
	return say("%s", once(why))
}

// errorsMet reports errors of Acquire and Release, the most frequent first.
func errorsMet(s results.Summary) []Finding {
	counts, all := map[string]int64{}, int64(0)
	for _, run := range s.Runs {
		for _, e := range run.Errors {
			counts[e.Error] += e.Count
			all += e.Count
		}
	}
	if all == 0 {
		return nil
	}
	var names []string
	for _, e := range results.CountErrors(counts) {
		names = append(names, fmt.Sprintf("%d × %s", e.Count, e.Error))
	}
	return say("had %s%s", results.CountOf(int(all), "error"), named(names, len(names)))
}

// labels returns a function that reports those labels of a strategy's runs that wanted accepts, each with its
// explanation.
func labels(wanted func(results.Code) bool) about {
	return func(s results.Summary) []Finding {
		var found []Finding
		for _, run := range s.Runs {
			for _, label := range run.Labels {
				if !wanted(label.Code) {
					continue
				}
				p := label.Phrase()
				f := Finding{Remark: label, phrase: p}
				if meaning := label.Code.Explanation(); meaning != "" {
					f.phrase, f.short = results.Phrasef("%s%s", p, meaning), 1+len(p)
				}
				found = append(found, f)
			}
		}
		found, _ = Alike(found)
		return found
	}
}

// overloaded reports whether a label means that arrivals of an open loop found every client already waiting for the
// lock.
func overloaded(label results.Code) bool { return label == results.Overloaded }

func otherLabel(label results.Code) bool { return !label.SetsThePace() && !overloaded(label) }

// tooFew reports the kinds of durations of which a run had too few for a 99th percentile.
func tooFew(s results.Summary) []Finding {
	few := results.JoinPhrases(s.TooFew(), ", ")
	if len(few) == 0 {
		return nil
	}
	longer := "use a longer --duration"
	if s.Workload.Iterations > 0 {
		longer = "use more --iterations"
	}
	return say("%s in a run: the p99 of fewer than 100 is their maximum; "+longer, few)
}

// stalled reports locks that no client obtained during a long part of a window although clients waited, for example
// because the server was stopped. It leaves out workloads with faults: these stall the lock on purpose and have stall
// figures of their own.
func stalled(s results.Summary) []Finding {
	if len(s.Workload.Faults) > 0 {
		return nil
	}
	var worst results.Run
	n := 0
	for _, run := range s.Runs {
		if !run.Stalled() {
			continue
		}
		if n++; n == 1 || *run.Speed.Stall > *worst.Speed.Stall {
			worst = run
		}
	}
	if n == 0 {
		return nil
	}
	took := func(name string) results.Quantity {
		return exact(results.MustMetric(name).Of(worst), results.Nanoseconds)
	}
	grant := "no grant"
	if s.Workload.Keys > 1 { // other keys may have been granted
		grant = "no grant of a key"
	}
	text := results.Phrasef(grant+" for %s of %s although clients waited", took("stall"), window(worst))
	if worst.Fairness.LongestWait != nil {
		text = results.Phrasef("%s, longest wait %s", text, took("longest_wait"))
	}
	if len(s.Runs) > 1 {
		text = results.Phrasef("%s, in the worst of %s such runs out of %s", text, n, len(s.Runs))
	}
	return say("%s", text)
}

// otherHolds reports strategies whose mean hold differs from the requested hold. It leaves out workloads with bursts or
// faults, which make holds longer on purpose.
func otherHolds(all []results.Summary) []Finding {
	m := results.MustMetric("hold_mean")
	var notes []results.Phrase
	for _, s := range all {
		hold, asked := s.Figure(m), s.HoldAsked()
		if hold == nil || asked == nil || s.Workload.Burst > 0 || len(s.Workload.Faults) > 0 {
			continue
		}
		if off := hold.Value / asked.Value; off > equalHolds || off < 1/equalHolds {
			direction := "longer"
			if off < 1 {
				direction = "shorter"
			}
			notes = append(notes,
				results.Phrasef("%s %s % %s", s.Title(), results.Measured(100*math.Abs(off-1), "%.0f"), direction))
		}
	}
	if notes == nil {
		return nil
	}
	return say("actual mean holds differ from the requested hold: %s", results.JoinPhrases(notes, ", "))
}

// unequalHolds reports strategies whose mean holds differ by over 3 %. Throughput depends on the holds. The gap does
// not, but it is known only if a client always waits.
func unequalHolds(all []results.Summary) []Finding {
	m := results.MustMetric("hold_mean")
	known := slices.DeleteFunc(slices.Clone(all), func(s results.Summary) bool { return s.Figure(m) == nil })
	var notes []results.Phrase
	gaps := true
	for i, first := range known {
		alike := func(s results.Summary) bool { return results.SameWorkload(s.Workload, first.Workload) }
		if slices.ContainsFunc(known[:i], alike) {
			continue
		}
		least, most := extremes(with(known, first), m)
		short, long := least.Figure(m), most.Figure(m)
		if long.Value > equalHolds*short.Value {
			notes = append(notes, results.Phrasef("%s %s, %s %s", most.Title(), exact(long, m.Unit), least.Title(),
				exact(short, m.Unit)))
			gaps = gaps && !slices.ContainsFunc(with(known, first), noGap)
		}
	}
	if notes == nil {
		return nil
	}
	consequence := "compare the gap, not acq/s"
	if !gaps {
		consequence = "acq/s and waits depend on the holds, too"
	}
	found := say("mean holds differ by over 3 %%s (%s): "+consequence, results.Phrase{}, results.JoinPhrases(notes, "; "))
	found[0].short = 1
	return found
}

// noGap reports whether a strategy has no gap that could be compared instead of the throughput.
func noGap(s results.Summary) bool {
	return s.Workload.Coalesce || s.Figure(results.MustMetric("gap")) == nil
}
