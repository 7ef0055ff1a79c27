package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// equalHolds is the largest ratio of mean holds at which speeds can be compared directly, and at
// which a hold is as it was asked for.
const equalHolds = 1.03

func invalid(s results.Summary) []Finding {
	reasons, n := collect(s, func(r results.Run) []string { return r.Invalid })
	which := fmt.Sprintf("%d of its %d runs cannot be trusted", n, len(s.Runs))
	switch {
	case n == 0:
		return nil
	case len(s.Runs) == 1:
		which = "its run cannot be trusted"
	case n == len(s.Runs):
		which = fmt.Sprintf("none of its %d runs can be trusted", n)
	case !s.Invalid: // otherwise the other runs failed
		which += " and are left out"
	}
	return say(which + ": " + strings.Join(once(reasons), "; "))
}

// failed reports runs that ended early and are not invalid.
func failed(s results.Summary) []Finding {
	why, n := collect(s, func(r results.Run) []string {
		if r.Usable() || !r.Valid() {
			return nil
		}
		return []string{r.Failure}
	})
	if n == 0 {
		return nil
	}
	return say(fmt.Sprintf("%s failed: %s", words.Count(n, "run"), strings.Join(once(why), "; ")))
}

// missed reports faults that were not injected.
func missed(s results.Summary) []Finding {
	why, _ := collect(s, func(r results.Run) (all []string) {
		for _, fault := range r.Faults {
			for _, why := range fault.Missed {
				all = append(all, fault.Fault.Name+": "+why)
			}
		}
		return all
	})
	return say(strings.Join(once(why), "; "))
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
	return say("met " + words.Count(int(all), "error") + named(names, len(names)))
}

// labels reports the wanted labels of the runs, with their meaning.
func labels(wanted func(string) bool) about {
	return func(s results.Summary) []Finding {
		texts, _ := collect(s, func(r results.Run) (all []string) {
			for _, label := range r.Labels {
				if wanted(label) {
					all = append(all, label+meaning(label))
				}
			}
			return all
		})
		var found []Finding
		for _, text := range once(texts) {
			found = append(found, say(text)...)
		}
		return found
	}
}

// overloaded says whether a label means that an open loop's arrivals found all clients waiting.
func overloaded(label string) bool { return strings.HasPrefix(label, results.Overloaded) }

func otherLabel(label string) bool { return !results.SetsThePace(label) && !overloaded(label) }

// meaning explains a label that is not clear by itself.
func meaning(label string) string {
	for _, m := range []struct{ begins, says string }{
		{results.GeneratorBound, "the machine was busy with lockbench and its server: the lock may be faster than shown"},
		{results.BusyMachine, "busy with something other than lockbench and Redis: measure on a quieter one"},
		{results.OtherCPU, "of all cores, by neither lockbench nor Redis: measure on a quieter machine"},
		{results.Stolen, "of all cores, by other machines on the same hardware"},
		{
			results.OutlivedLease,
			"what is claimed holds until the lease ends: who works on after that is no longer protected, " +
				"and overlaps after expiry break no claim",
		},
		{results.WindowsApart, "what one of them recorded outside the common part counts too, under another load"},
		{"through proxies", "for the sake of the network's faults, and slower than without"},
		{"redis-bound", "the thread that executes commands was busy for at least 90 % of the time"},
		{
			results.PartOfASession,
			"what Redis counted is all of theirs, divided by this one's acquisitions",
		},
	} {
		if strings.HasPrefix(label, m.begins) {
			return " (" + m.says + ")"
		}
	}
	return ""
}

// tooFew reports for which durations tables have no 99th percentile, because there were too few.
func tooFew(s results.Summary) []Finding {
	few := s.TooFew()
	if len(few) == 0 {
		return nil
	}
	longer := "a longer --duration has more"
	if s.Workload.Iterations > 0 {
		longer = "more --iterations have more"
	}
	return say(strings.Join(few, ", ") + " in a run, and a p99 of less than 100 is their maximum: " + longer)
}

// stalled reports locks that no client got for a long part of a window although some waited, as when
// the server was stopped. Faults do so on purpose, and have figures of their own.
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
	took := func(name string) string { return results.MustMetric(name).Of(worst).Text(results.Nanoseconds) }
	grant := "no grant"
	if s.Workload.Keys > 1 { // the others may have been granted
		grant = "no grant of a key"
	}
	text := fmt.Sprintf("%s for %s of %s although clients waited", grant, took("stall"), window(worst))
	if worst.Fairness.LongestWait != nil {
		text += ", longest wait " + took("longest_wait")
	}
	if len(s.Runs) > 1 {
		text += fmt.Sprintf(", the worst of %d such runs of %d", n, len(s.Runs))
	}
	return say(text)
}

// otherHolds reports mean holds that are not what the workload asked for. Bursts and faults make
// holds longer on purpose.
func otherHolds(all []results.Summary) []Finding {
	m := results.MustMetric("hold_mean")
	var notes []string
	for _, s := range all {
		hold, asked := s.Figure(m), s.HoldAsked()
		if hold == nil || asked == nil || s.Workload.Burst > 0 || len(s.Workload.Faults) > 0 {
			continue
		}
		if off := hold.Value / asked.Value; off > equalHolds || off < 1/equalHolds {
			notes = append(notes, fmt.Sprintf("%s held %s for %s", s.Title(), hold.Text(m.Unit), asked.Text(m.Unit)))
		}
	}
	if notes == nil {
		return nil
	}
	return say("mean holds over 3 % off what was asked: " + strings.Join(notes, ", "))
}

// unequalHolds reports that strategies held for different times: their throughputs then do not
// compare the locks. Their gaps do, if all are known: without a client that always waits there are none.
func unequalHolds(all []results.Summary) []Finding {
	m := results.MustMetric("hold_mean")
	known := slices.DeleteFunc(slices.Clone(all), func(s results.Summary) bool { return s.Figure(m) == nil })
	var notes []string
	gaps := true
	for i, first := range known {
		alike := func(s results.Summary) bool { return results.SameWorkload(s.Workload, first.Workload) }
		if slices.ContainsFunc(known[:i], alike) {
			continue
		}
		least, most := extremes(with(known, first), m)
		short, long := least.Figure(m), most.Figure(m)
		if long.Value > equalHolds*short.Value {
			notes = append(notes, fmt.Sprintf("%s %s, %s %s", most.Title(), long.Text(m.Unit), least.Title(),
				short.Text(m.Unit)))
			gaps = gaps && !slices.ContainsFunc(with(known, first), noGap)
		}
	}
	if notes == nil {
		return nil
	}
	consequence := "compare the gap, not acq/s"
	if !gaps {
		consequence = "acq/s and waits do not compare the locks alone"
	}
	return say("mean holds differ by over 3 % (" + strings.Join(notes, "; ") + "): " + consequence)
}

// noGap says whether the tables have no gap of a strategy.
func noGap(s results.Summary) bool {
	return s.Workload.Coalesce || s.Figure(results.MustMetric("gap")) == nil
}
