package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// mostBrief is the largest number of findings under the short table, unless more was not safe.
const mostBrief = 3

// Brief returns the findings to read first, in few words and with no more digits than are known:
// all that was not safe, which clients a lock did not serve, which lock was the fastest and whether
// that is certain, and what it cost Redis. They are at most three, unless more was not safe.
func Brief(all []results.Summary) []Finding {
	var found []Finding
	most := mostBrief
	for _, r := range brief() {
		for _, f := range r.find(all) {
			f.Kind = r.Kind
			found = append(found, f)
		}
		if r.Sort == Unsafe {
			most = max(most, len(found)) // nothing unsafe is left out
		}
	}
	return found[:min(len(found), most)]
}

// brief returns the rules of Brief, the most important first.
func brief() []rule {
	rules := []rule{
		{Kind{Sort: Waiting}, acrossStrategies(labels(overloaded))},
		{Kind{Sort: Waiting}, busiest(served)},
		{Kind{Sort: Best}, busiest(ahead)},
		{Kind{Sort: Cost}, cheapest},
	}
	var unsafe []rule
	for _, r := range safety(acrossStrategies) {
		if r.Sort == Unsafe && r.Note != byDesign { // the claims column has it
			unsafe = append(unsafe, r)
		}
	}
	return append(unsafe, rules...)
}

// served names the locks that served every client, and for the others how many they did not
// serve. It leaves out workloads whose clients are only slots.
func served(all []results.Summary) []Finding {
	var every, not []string
	for _, s := range rivals(all, metric("acquisitions")) {
		low, high, told := starved(s)
		switch {
		case s.Workload.Slots():
		case high == 0 && told == "":
			every = append(every, s.Title())
		case high > 0:
			none := fmt.Sprint(high)
			if low < high {
				none = fmt.Sprintf("%d–%d", low, high)
			}
			if len(not) == 0 {
				none += fmt.Sprintf(" of %s got nothing in %s", words.Count(s.Workload.Clients, "client"),
					window(s.Used[0]))
			}
			not = append(not, "with "+s.Title()+" "+none+told)
		}
	}
	var parts []string
	if len(every) > 0 {
		parts = append(parts, words.And(every)+" served every client")
	}
	if len(not) > 0 {
		parts = append(parts, strings.Join(not, ", "))
	}
	return say(strings.Join(parts, "; "))
}

// ahead names the lock with the highest throughput; if holds differed, the one with the
// shortest gap; in an open loop, the one with the shortest slow waits. It says whether the
// difference to the next one is certain.
func ahead(all []results.Summary) []Finding {
	m, best := metric("acq_per_s"), "highest throughput"
	switch w := all[0].Workload; {
	case w.Burst > 0: // the bursts set the pace
		return nil
	case w.Rate > 0:
		m, best = metric("wait_p99"), "shortest wait p99"
	case len(unequalHolds(rivals(all, m))) > 0: // longer holds lower the throughput
		m, best = metric("gap"), "shortest gap (mean holds differ)"
	}
	first, second, ok := bestTwo(all, m)
	if !ok || first.Brief(m) == results.NotKnown { // a percentile of too few waits
		return nil
	}
	if m.Name == "gap" && min(first.Figure(m).Value, second.Figure(m).Value) <= 0 {
		return nil // a window with few grants: at its edges a gap can come out below zero
	}
	text := fmt.Sprintf("%s at %s: %s, %s", best, words.Count(first.Workload.Clients, "client"), first.Title(),
		first.Brief(m))
	ratio := first.Against(second, m)
	if ratio == nil || ratio.Rounds < 2 {
		why := "one run of each does not tell whether they differ (--runs 6)"
		if min(len(first.Used), len(second.Used)) > 1 {
			why = "too few of their rounds can be compared"
		}
		return say(fmt.Sprintf("%s; next %s, %s: %s", text, second.Title(), second.Brief(m), why))
	}
	text += fmt.Sprintf(", %.2f times that of %s ", ratio.Median, second.Title())
	switch between := fmt.Sprintf("%.2f–%.2f", ratio.Low, ratio.High); {
	case !ratio.Interval:
		text += fmt.Sprintf("(%s in %d rounds: an interval takes 6)", between, ratio.Rounds)
	case apart(ratio, m):
		text += fmt.Sprintf("(95 %% interval %s, %d rounds)", between, ratio.Rounds)
	default:
		text += fmt.Sprintf("(95 %% interval %s, %d rounds): not told apart", between, ratio.Rounds)
	}
	return say(text)
}

// cheapest says what the locks in Redis cost it: how the cost grows with the clients if there
// were several numbers of them, else which lock costs the least and which the most.
func cheapest(all []results.Summary) []Finding {
	if found := herdsIn(all, results.Summary.Brief); len(found) > 0 {
		return found[:1]
	}
	return busiest(func(all []results.Summary) []Finding {
		m := metric("commands_per_acq")
		if all = inRedis(all); len(all) < 2 {
			return nil
		}
		least, most := cheapestAndDearest(all)
		if most.Figure(m).Value < flat*least.Figure(m).Value {
			return nil
		}
		cheapest := alikeIn(all, m, least)
		return say(fmt.Sprintf("of the locks in Redis %s sent the fewest commands "+
			"for an acquisition, %s%s, and %s the most, %s",
			titles(cheapest), least.Brief(m), passedWithin(cheapest), titles(alikeIn(all, m, most)), most.Brief(m)))
	})(all)
}

// alikeIn returns the strategies whose figure is the same as one's in the known digits.
func alikeIn(all []results.Summary, m results.Metric, one results.Summary) []results.Summary {
	return slices.DeleteFunc(slices.Clone(all), func(s results.Summary) bool { return s.Brief(m) != one.Brief(m) })
}

func titles(all []results.Summary) string {
	var names []string
	for _, s := range all {
		names = append(names, s.Title())
	}
	return words.And(names)
}

// overloaded says whether a label means that an open loop's arrivals found all clients waiting.
func overloaded(label string) bool { return strings.HasPrefix(label, results.Overloaded) }
