package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// nearlyAll is the utilisation, in percent, at or above which a lock counts as being at its ceiling.
const nearlyAll = 95.0

// served names the locks that served every client, and states the number of unserved clients for each other lock. It
// leaves out workloads whose clients are only slots for arrivals, and does not name locks with waits that timed out.
func served(all []results.Summary) []Finding {
	var every []string
	var not []results.Phrase
	for _, s := range rivals(all, results.MustMetric("acquisitions")) {
		low, high, known := starved(s)
		switch {
		case s.Workload.Slots():
		case high == 0 && known == "" && givenUp(s) == nil:
			every = append(every, s.Title())
		case high > 0:
			none := results.Spanned([]results.Phrase{results.Phrasef("%s", low), results.Phrasef("%s", high)})
			if len(not) == 0 {
				none = results.Phrasef("left %s of %s without the lock in %s", none,
					results.CountOf(s.Workload.Clients, "client"), window(s.Used[0]))
			}
			not = append(not, results.Phrasef("%s %s%s", s.Title(), none, known))
		}
	}
	var parts []results.Phrase
	if len(every) > 0 {
		parts = append(parts, results.Phrasef("%s served every client", words.And(every)))
	}
	if len(not) > 0 {
		parts = append(parts, results.JoinPhrases(not, ", "))
	}
	return say("%s", results.JoinPhrases(parts, "; "))
}

// window formats the length of a run's window in seconds.
func window(r results.Run) results.Quantity {
	return results.Written(float64(r.WindowNS), fmt.Sprintf("%.3g s", float64(r.WindowNS)/1e9))
}

// starved returns the smallest and the largest number of starved clients in the used runs. If the number is unknown for
// some of these runs, known is a text with the number of runs for which it is known: the other runs may have starved
// clients too.
func starved(s results.Summary) (low, high int, known string) {
	low = math.MaxInt
	runs := 0
	for _, run := range s.Used {
		if n := run.Fairness.Starved; n != nil {
			low, high, runs = min(low, *n), max(high, *n), runs+1
		}
	}
	if runs < len(s.Used) {
		known = fmt.Sprintf(" (known for %d of %s)", runs, words.Count(len(s.Used), "run"))
	}
	return low, high, known
}

// atTheCeiling reports locks that are held nearly all the time. It leaves out workloads whose clients do not always
// wait, or in which something other than the lock delays them, such as the pause after an error. It also leaves out
// locks whose holds last longer than requested, because with another lock the holds may be shorter and the throughput
// higher.
func atTheCeiling(s results.Summary) []Finding {
	w, m := s.Workload, results.MustMetric("utilisation")
	paced := w.Rate > 0 || len(w.Stages) > 0 || w.Burst > 0 || !w.Think.IsZero() || w.Hold.IsZero() ||
		w.Timeout != nil || len(w.Faults) > 0 || w.Coalesce
	if paced || w.Clients < 2*w.Keys || s.Capacity != 1 || s.Figure(results.MustMetric("errors")).Value > 0 ||
		len(rivals([]results.Summary{s}, m)) == 0 || s.Figure(m).Value < nearlyAll {
		return nil
	}
	hold, asked := s.Figure(results.MustMetric("hold_mean")), s.HoldAsked()
	if hold == nil || asked == nil || hold.Value > equalHolds*asked.Value {
		return nil
	}
	return say("held %s of the time: no lock with one holder at a time can serve many more clients, unless the "+
		"hold is shorter than %s or there are more keys than %s", exact(s.Figure(m), results.Percent), w.Hold, w.Keys)
}

// ahead names the best lock and compares it with the second best. Locks are ranked by throughput or, if holds differed,
// by the gap. In an open loop they are ranked by the wait p99.
func ahead(all []results.Summary) []Finding {
	m, best := results.MustMetric("acq_per_s"), "highest throughput"
	switch w := all[0].Workload; {
	case w.Burst > 0: // the bursts set the pace
		return nil
	case w.Rate > 0:
		m, best = results.MustMetric("wait_p99"), "shortest wait p99"
	case w.Coalesce: // one acquisition serves several clients
		m, best = results.MustMetric("served_per_s"), "most clients served"
	case len(unequalHolds(rivals(all, m))) > 0: // longer holds lower the throughput
		m, best = results.MustMetric("gap"), "shortest gap (mean holds differ)"
	}
	first, second, ok := bestTwo(all, m)
	if !ok || first.Brief(m) == results.NotKnown { // a percentile of too few waits
		return nil
	}
	if m.Name == "gap" && min(first.Figure(m).Value, second.Figure(m).Value) <= 0 {
		return nil // a gap of 0 has no ratio
	}
	better := func(f float64) bool {
		best := first.Figure(m).Value
		return m.Better == results.Higher && f > best || m.Better == results.Lower && f < best
	}
	without := leftOut(all, m, better)
	text := results.Phrasef("%s at %s: %s, %s", best, results.CountOf(first.Workload.Clients, "client"), first.Title(),
		brief(first, m))
	ratio := first.Against(second, m)
	if ratio == nil || ratio.Rounds < 2 {
		why := "one run each is not enough to compare (--runs 6)"
		if min(len(first.Used), len(second.Used)) > 1 {
			why = "too few of their rounds can be compared"
		}
		return say("%s; next %s, %s: %s%s", text, second.Title(), brief(second, m), why, without)
	}
	low, high := results.Measured(ratio.Low, "%.2f"), results.Measured(ratio.High, "%.2f")
	times, between := "", results.Phrasef("%s–%s", low, high)
	switch {
	case ratio.AtMost:
		times, between = "at most ", results.Phrasef("up to %s", high)
	case ratio.AtLeast:
		times, between = "at least ", results.Phrasef("from %s", low)
	}
	text = results.Phrasef("%s, %s%s times that of %s ", text, times, results.Measured(ratio.Median, "%.2f"),
		second.Title())
	in := "%s(95 % interval %s, %s rounds)"
	switch {
	case !ratio.Interval:
		in = "%s(%s in %s rounds: an interval needs 6)"
	case apart(ratio, m):
	default:
		in += ": not significant"
	}
	return say(in+"%s", text, between, ratio.Rounds, without)
}

// bestTwo returns the two best strategies by a metric; false if there are fewer than two, or if the best figure is only
// a lower bound.
func bestTwo(all []results.Summary, m results.Metric) (first, second results.Summary, ok bool) {
	all = rivals(all, m)
	if len(all) < 2 {
		return first, second, false
	}
	slices.SortStableFunc(all, func(a, b results.Summary) int {
		if m.Better == results.Higher {
			a, b = b, a
		}
		return by(m)(a, b)
	})
	return all[0], all[1], !all[0].Figure(m).AtLeast
}

// apart reports whether the 95 % interval of the ratio lies entirely on the better side of 1. It returns false if the
// deciding end of the interval is not known.
func apart(ratio *results.Ratio, m results.Metric) bool {
	return m.Better == results.Higher && ratio.Low > 1 && !ratio.AtMost ||
		m.Better == results.Lower && ratio.High < 1 && !ratio.AtLeast
}
