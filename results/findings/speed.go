package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// nearlyAll is the percentage of the time that a lock is held at its ceiling.
const nearlyAll = 95.0

// served names the locks that served every client, and for the others how many they did not
// serve. It leaves out workloads whose clients are only slots, and does not name locks of which clients gave up waits.
func served(all []results.Summary) []Finding {
	var every []string
	var not []results.Phrase
	for _, s := range rivals(all, results.MustMetric("acquisitions")) {
		low, high, told := starved(s)
		switch {
		case s.Workload.Slots():
		case high == 0 && told == "" && givenUp(s) == nil:
			every = append(every, s.Title())
		case high > 0:
			none := results.Spanned([]results.Phrase{results.Phrasef("%s", low), results.Phrasef("%s", high)})
			if len(not) == 0 {
				none = results.Phrasef("%s of %s got nothing in %s", none, results.CountOf(s.Workload.Clients, "client"),
					window(s.Used[0]))
			}
			not = append(not, results.Phrasef("with %s %s%s", s.Title(), none, told))
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

// window writes the length of a run's window.
func window(r results.Run) results.Quantity {
	return results.Written(float64(r.WindowNS), fmt.Sprintf("%.3g s", float64(r.WindowNS)/1e9))
}

// starved returns the fewest and the most clients without an acquisition in the used runs. told
// says in how many runs that is known, if not in all. Runs that cannot tell do not show that
// every client was served.
func starved(s results.Summary) (low, high int, told string) {
	low = math.MaxInt
	known := 0
	for _, run := range s.Used {
		if n := run.Fairness.Starved; n != nil {
			low, high, known = min(low, *n), max(high, *n), known+1
		}
	}
	if known < len(s.Used) {
		told = fmt.Sprintf(", as far as %d of %s can tell", known, words.Count(len(s.Used), "run"))
	}
	return low, high, told
}

// atTheCeiling reports locks that are held nearly all the time. It leaves out workloads whose clients do
// not always wait, or in which something else than the lock delays them: clients pause after an error. Holds
// that last longer than asked say nothing about other locks: with those the holds may be shorter.
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
	return say("held %s of the time: no lock with one holder at a time serves many more, a shorter hold "+
		"than %s or more keys than %s do", exact(s.Figure(m), results.Percent), w.Hold, w.Keys)
}

// ahead names the lock with the highest throughput; if holds differed, the one with the
// shortest gap; in an open loop, the one with the shortest slow waits. It says whether the
// difference to the next one is certain.
func ahead(all []results.Summary) []Finding {
	m, best := results.MustMetric("acq_per_s"), "highest throughput"
	switch w := all[0].Workload; {
	case w.Burst > 0: // the bursts set the pace
		return nil
	case w.Rate > 0:
		m, best = results.MustMetric("wait_p99"), "shortest wait p99"
	case w.Coalesce: // clients that share an acquisition are served too
		m, best = results.MustMetric("served_per_s"), "most clients served"
	case len(unequalHolds(rivals(all, m))) > 0: // longer holds lower the throughput
		m, best = results.MustMetric("gap"), "shortest gap (mean holds differ)"
	}
	first, second, ok := bestTwo(all, m)
	if !ok || first.Brief(m) == results.NotKnown { // a percentile of too few waits
		return nil
	}
	if m.Name == "gap" && min(first.Figure(m).Value, second.Figure(m).Value) <= 0 {
		return nil // of nothing there is no ratio
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
		in = "%s(%s in %s rounds: an interval takes 6)"
	case apart(ratio, m):
	default:
		in += ": not told apart"
	}
	return say(in+"%s", text, between, ratio.Rounds, without)
}

// bestTwo returns the two best strategies by a metric; false if there are not two, or the best
// one is only a lower bound and may be larger.
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

// apart says whether the interval of the better one's ratio excludes 1. The end of a bound that is not known
// excludes nothing.
func apart(ratio *results.Ratio, m results.Metric) bool {
	return m.Better == results.Higher && ratio.Low > 1 && !ratio.AtMost ||
		m.Better == results.Lower && ratio.High < 1 && !ratio.AtLeast
}
