package findings

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// mostBrief is how many findings stand under the short table.
const mostBrief = 3

// Brief are the findings to read first, at most three, in few words and with no more digits
// than are known: what was not safe, whom a lock did not serve, which lock was the fastest
// and whether that is known, and what it cost Redis.
func Brief(all []results.Summary) []Finding {
	var found []Finding
	for _, r := range brief() {
		for _, f := range r.find(all) {
			f.Kind = r.Kind
			found = append(found, f)
		}
	}
	return found[:min(len(found), mostBrief)]
}

// brief are the rules of Brief, what matters most first.
func brief() []rule {
	rules := []rule{
		{Kind{Sort: Waiting}, acrossStrategies(labels(overloaded))},
		{Kind{Sort: Waiting}, busiest(served)},
		{Kind{Sort: Best}, busiest(ahead)},
		{Kind{Sort: Cost}, cheapest},
	}
	var unsafe []rule
	for _, r := range safety() {
		if r.Sort == Unsafe && r.Note != byDesign { // the claims say that
			unsafe = append(unsafe, rule{r.Kind, strategiesTogether(r.find)})
		}
	}
	return append(unsafe, rules...)
}

// strategiesTogether has one finding for all strategies of which the same is found but for
// its figures.
func strategiesTogether(find func([]results.Summary) []Finding) func([]results.Summary) []Finding {
	return func(all []results.Summary) []Finding {
		found := find(all)
		var texts []string
		for _, f := range found {
			texts = append(texts, f.Text)
		}
		var merged []Finding
		for _, g := range alike(texts, nil) {
			f := Finding{Text: g.text}
			for _, i := range g.members {
				f.Strategies = append(f.Strategies, found[i].Strategies...)
			}
			merged = append(merged, f)
		}
		return merged
	}
}

// served are the locks that served every client, and how many the others did not. In an
// open loop clients take what arrives, so none has a share to miss.
func served(all []results.Summary) []Finding {
	var every, not []string
	for _, s := range rivals(all, metric("starved")) {
		low, high, known := starved(s)
		switch {
		case s.Workload.Rate > 0 || !known:
		case high == 0:
			every = append(every, s.Title())
		default:
			none := fmt.Sprint(high)
			if low < high {
				none = fmt.Sprintf("%d–%d", low, high)
			}
			if len(not) == 0 {
				none += fmt.Sprintf(" of %s got nothing", words.Count(s.Workload.Clients, "client"))
			}
			not = append(not, "with "+s.Title()+" "+none)
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

// ahead is the lock with the highest throughput, where they held for different times with
// the shortest gap, in an open loop with the shortest of the slow waits, and whether it is
// known that the next one differs.
func ahead(all []results.Summary) []Finding {
	m, best := metric("acq_per_s"), "highest throughput"
	switch w := all[0].Workload; {
	case w.Burst > 0: // the pace is that of the bursts
		return nil
	case w.Rate > 0:
		m, best = metric("wait_p99"), "shortest wait p99"
	case len(unequalHolds(rivals(all, m))) > 0: // a machine that made some longer made them slower
		m, best = metric("gap"), "shortest gap (mean holds differ)"
	}
	first, second, ok := bestTwo(all, m)
	if !ok || first.Brief(m) == results.NotKnown { // a percentile of too few
		return nil
	}
	text := fmt.Sprintf("%s at %s: %s, %s", best, words.Count(first.Workload.Clients, "client"), first.Title(), first.Brief(m))
	ratio := first.Ratio(second, m)
	if ratio == nil || ratio.Rounds < 2 {
		return say(fmt.Sprintf("%s; next %s, %s: one run of each does not tell whether they differ (--runs 6)", text, second.Title(), second.Brief(m)))
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

// cheapest is what the locks in Redis ask of it: how that grows with the clients where
// there were several numbers of them, else who asks the least and who the most.
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
		return say(fmt.Sprintf("of the locks in Redis %s sent the fewest commands for an acquisition, %s, and %s the most, %s",
			alikeIn(all, m, least), least.Brief(m), alikeIn(all, m, most), most.Brief(m)))
	})(all)
}

// alikeIn are those whose figure is not told from one's in the digits that are known.
func alikeIn(all []results.Summary, m results.Metric, one results.Summary) string {
	var names []string
	for _, s := range all {
		if s.Brief(m) == one.Brief(m) {
			names = append(names, s.Title())
		}
	}
	return words.And(names)
}

// overloaded says of a label that an open loop's arrivals found all clients waiting.
func overloaded(label string) bool { return strings.HasPrefix(label, results.Overloaded) }
