package findings

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

const (
	barges       = 5.0  // times longer waits per client than per acquisition
	nearlyAll    = 95.0 // percent of the time that the lock could be held
	lostInHandOn = 50.0 // percent of it, below which most of the time is lost between holders
	level        = 0.9  // ratio to the best, in single runs, from which two are too close
)

// waiting returns the rules on clients that wait for too long.
func waiting() []rule {
	return []rule{
		{Kind{Sort: Waiting}, busiest(perStrategy(starvation))},
		{Kind{Waiting, "label", ""}, acrossStrategies(labels(overloaded))},
		{Kind{Sort: Waiting}, busiest(perStrategy(barging))},
	}
}

// best returns the rules on which lock is the best, and on when no lock can be better.
func best() []rule {
	return []rule{
		{Kind{Sort: Best, Advice: Before}, busiest(acrossStrategies(atTheCeiling))},
		{Kind{Sort: Best}, busiest(fastest)},
	}
}

// starvation reports clients without an acquisition.
func starvation(s results.Summary) []Finding {
	low, high, told := starved(s)
	if s.Invalid || high == 0 || s.Workload.Slots() {
		return nil
	}
	who := fmt.Sprint(high)
	if low < high {
		who = fmt.Sprintf("%d to %d", low, high)
	}
	run := s.Used[0]
	text := fmt.Sprintf("%s of %d clients never got the lock in %s%s", who, s.Workload.Clients, window(run), told)
	if missing := int64(s.Workload.Clients) - run.Speed.Served; missing > 0 && len(s.Used) == 1 {
		text += fmt.Sprintf("; with %s at least %d had to go without",
			words.Count(int(run.Speed.Served), "acquisition"), missing)
	}
	if commands := s.Figure(metric("commands_per_acq")); commands != nil {
		text += fmt.Sprintf("; %s commands per acquisition", commands.Text(results.Number))
	}
	return say(text)
}

// window writes the length of a run's window.
func window(r results.Run) string { return fmt.Sprintf("%.3g s", float64(r.WindowNS)/1e9) }

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

// barging reports that few clients take the lock again and again: waits are then short per
// acquisition and long per client.
func barging(s results.Summary) []Finding {
	for _, p := range []struct{ name, says string }{{"p50", "median"}, {"p99", "99th percentile"}} {
		short, long := s.Figure(metric("wait_"+p.name)), s.Figure(metric("wait_per_client_"+p.name))
		if s.Invalid || short == nil || long == nil || short.AtLeast || long.Value < barges*short.Value {
			continue
		}
		return say(fmt.Sprintf("the %s of the waits is %s over all acquisitions, "+
			"but %s with every client counting alike: few clients take the lock again and again while the others wait",
			p.says, short.Text(results.Nanoseconds), long.Text(results.Nanoseconds)))
	}
	return nil
}

// utilised returns the share of the time that a lock was held. It is nil unless clients always
// wait and only the lock delays them: for example, clients pause after an error.
func utilised(s results.Summary) *results.Figure {
	w, m := s.Workload, metric("utilisation")
	paced := w.Rate > 0 || len(w.Stages) > 0 || w.Burst > 0 || !w.Think.IsZero() || w.Hold.IsZero() ||
		w.Timeout != nil || len(w.Faults) > 0
	if paced || w.Clients < 2*w.Keys || s.Capacity != 1 || s.Figure(metric("errors")).Value > 0 ||
		len(rivals([]results.Summary{s}, m)) == 0 {
		return nil
	}
	return s.Figure(m)
}

// atTheCeiling reports locks that are held nearly all the time.
func atTheCeiling(s results.Summary) []Finding {
	held := utilised(s)
	if held == nil || held.Value < nearlyAll {
		return nil
	}
	return say(fmt.Sprintf("held %s of the time: "+
		"no other lock serves many more, a shorter hold than %v or more keys than %d do",
		held.Text(results.Percent), s.Workload.Hold, s.Workload.Keys), evidence(s, "utilisation"))
}

// fastest names the lock with the highest throughput, and the lock with the shortest slow waits
// of all clients, and says how certain that is. The lock does not set the rate of arrivals or
// bursts, and most of a wait in a burst passes before the release.
func fastest(all []results.Summary) []Finding {
	switch w := all[0].Workload; {
	case w.Burst > 0:
		return nil
	case w.Rate > 0:
		return rank(all, "wait_p99", "Shortest 99th percentile of the waits")
	}
	return append(rank(all, "acq_per_s", "Highest throughput"),
		rank(all, "wait_per_client_p99", "Shortest 99th percentile of the waits, every client counting alike")...)
}

// rank compares the two best strategies by a metric. A lower bound cannot be the better one of
// two that should be small.
func rank(all []results.Summary, name, title string) []Finding {
	m := metric(name)
	first, second, ok := bestTwo(all, m)
	if !ok {
		return nil
	}
	top, next := first.Figure(m), second.Figure(m)
	text := fmt.Sprintf("%s at %d clients: %s, %s", title, first.Workload.Clients, first.Name, top.Text(m.Unit))
	switch ratio := first.Ratio(second, m); {
	case ratio != nil && ratio.Interval:
		text += fmt.Sprintf(", %.2f times that of %s (95 %% interval %.2f–%.2f over %d paired rounds)", ratio.Median,
			second.Name, ratio.Low, ratio.High, ratio.Rounds)
		if !apart(ratio, m) {
			text += ": not told apart"
		}
	default:
		text += fmt.Sprintf("; next %s, %s", second.Name, next.Text(m.Unit))
		if top.Value > 0 && next.Value > 0 && math.Min(top.Value/next.Value, next.Value/top.Value) >= level {
			text += ": too close to tell without more rounds (--runs 6)"
		}
	}
	return say(text)
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
		return cmp.Compare(a.Figure(m).Value, b.Figure(m).Value)
	})
	return all[0], all[1], !all[0].Figure(m).AtLeast
}

// apart says whether the interval of the better one's ratio excludes 1.
func apart(ratio *results.Ratio, m results.Metric) bool {
	return m.Better == results.Higher && ratio.Low > 1 || m.Better == results.Lower && ratio.High < 1
}
