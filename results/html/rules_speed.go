package html

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results"
)

// What makes a difference worth a sentence.
const (
	muchDearer   = 3.0  // times the commands of the cheapest
	fewCommands  = 5.0  // more than the cheapest, at the least
	grows        = 2.0  // times the commands with the fewest clients
	flat         = 1.25 // times: no growth
	manyMore     = 5.0  // times the clients, for either to mean something
	barges       = 5.0  // times the wait per acquisition
	nearlyAll    = 0.95 // of the time that the lock could be held
	lostInHandOn = 0.5  // of it, below which most is lost between holders
	level        = 0.9  // of the best, in single runs: not told apart
)

// starvation is clients without a turn.
func starvation(a arena) []finding {
	var found []finding
	for _, c := range a.cells {
		low, high := math.MaxInt, 0
		for _, run := range c.Used {
			if n := run.Fairness.Starved; n != nil {
				low, high = min(low, *n), max(high, *n)
			}
		}
		if c.Suspect || high == 0 || a.workload.Rate > 0 {
			continue
		}
		run := c.typical()
		who := fmt.Sprint(high)
		if low < high {
			who = fmt.Sprintf("%d to %d", low, high)
		}
		text := fmt.Sprintf("%s: %s of %d clients never got the lock in %v", a.at(c), who, a.workload.Clients, window(run))
		if missing := int64(a.workload.Clients) - run.Speed.Served; missing > 0 && len(c.Used) == 1 {
			text += fmt.Sprintf("; with %s at least %d had to go without", times(run.Speed.Served, "acquisition", "acquisitions"), missing)
		}
		if commands := c.Figure(metric("commands_per_acq")); commands != nil {
			text += fmt.Sprintf("; %s commands per acquisition", commands.Text(results.Number))
		}
		found = append(found, finding{starving, text + "."})
	}
	return found
}

func window(r results.Run) time.Duration {
	return time.Duration(r.WindowNS).Round(10 * time.Millisecond)
}

// barging is few clients taking the lock again and again: waits are short by the
// acquisition and long by the client.
func barging(a arena) []finding {
	var found []finding
	for _, c := range a.cells {
		for _, p := range []string{"p50", "p99"} {
			short, long := c.Figure(metric("wait_"+p)), c.Figure(metric("wait_per_client_"+p))
			if c.Suspect || short == nil || long == nil || short.AtLeast || long.Value < barges*short.Value {
				continue
			}
			found = append(found, finding{starving, fmt.Sprintf("%s: the %s of the waits is %s over all acquisitions, but %s with every client counting alike: few clients take the lock again and again while the others wait.",
				a.at(c), map[string]string{"p50": "median", "p99": "99th percentile"}[p], short.Text(results.Nanoseconds), long.Text(results.Nanoseconds))})
			break
		}
	}
	return found
}

// trusted are the cells that may be compared: measured, and locks that excluded.
func (a arena) trusted(m results.Metric) []cell {
	return slices.DeleteFunc(slices.Clone(a.cells), func(c cell) bool {
		violations := c.Figure(metric("violations"))
		excludes := slices.Contains(c.Claims, "exclusion") && c.Caveat == "" && violations != nil && violations.Value == 0
		return c.Suspect || !excludes || c.Figure(m) == nil
	})
}

// costBesideBest is what a strategy asks of Redis beside the cheapest one.
func costBesideBest(a arena) []finding {
	m := metric("commands_per_acq")
	cells := slices.DeleteFunc(a.trusted(m), func(c cell) bool { return c.Figure(m).Value == 0 }) // it is not on Redis
	if len(cells) < 2 {
		return nil
	}
	cheapest := slices.MinFunc(cells, func(x, y cell) int { return byValue(x.Figure(m), y.Figure(m)) })
	least := cheapest.Figure(m)
	var dear []string
	for _, c := range cells {
		if f := c.Figure(m); f.Value >= muchDearer*least.Value && f.Value >= least.Value+fewCommands {
			dear = append(dear, fmt.Sprintf("%s %s (%.1f times)", c.Name, f.Text(results.Number), f.Value/least.Value))
		}
	}
	if len(dear) == 0 {
		return nil
	}
	return []finding{{costly, fmt.Sprintf("Redis executes %s commands for an acquisition of %s, and for one of %s.", least.Text(results.Number), cheapest.Name, enumerate(dear))}}
}

// byValue sorts what is known exactly by its value.
func byValue(a, b *results.Figure) int {
	switch {
	case a.Value < b.Value:
		return -1
	case a.Value > b.Value:
		return 1
	}
	return 0
}

// herds tell which strategies' cost grows with the number of clients, and which
// ones' does not.
func (f family) herds() []finding {
	m := metric("commands_per_acq")
	few, many := f.arenas[0], f.top()
	if float64(many.workload.Clients) < manyMore*float64(few.workload.Clients) {
		return nil
	}
	var growing, level []string
	for _, c := range many.trusted(m) {
		at := slices.IndexFunc(few.cells, func(other cell) bool { return other.Name == c.Name })
		if at < 0 || few.cells[at].Suspect || few.cells[at].Figure(m) == nil {
			continue
		}
		before, after := few.cells[at].Figure(m), c.Figure(m)
		text := fmt.Sprintf("%s (%s → %s)", c.Name, before.Text(results.Number), after.Text(results.Number))
		switch {
		case after.Value >= grows*before.Value && after.Value >= before.Value+fewCommands:
			growing = append(growing, text)
		case after.Value <= flat*before.Value && before.Value <= flat*after.Value:
			level = append(level, text)
		}
	}
	between := fmt.Sprintf("from %d to %d clients", few.workload.Clients, many.workload.Clients)
	var found []finding
	if len(growing) > 0 {
		found = append(found, finding{costly, fmt.Sprintf("Commands per acquisition grow with the clients, a herd, %s: %s.", between, strings.Join(growing, ", "))})
	}
	if len(level) > 0 {
		found = append(found, finding{costly, fmt.Sprintf("Commands per acquisition hardly change %s: %s.", between, strings.Join(level, ", "))})
	}
	return found
}

// atTheCeiling tells whether the lock was held all the time, or mostly lost
// between its holders. Both only mean something while somebody waits all along, and
// nothing but the lock keeps him waiting.
func atTheCeiling(a arena) []finding {
	w := a.workload
	if w.Rate > 0 || len(w.Stages) > 0 || w.Gather > 0 || !w.Think.IsZero() || w.Hold.IsZero() || w.Timeout != nil || len(w.Faults) > 0 || w.Clients < 2*w.Keys {
		return nil
	}
	m := metric("utilisation")
	var full, idle []string
	for _, c := range a.trusted(m) {
		if c.Capacity != 1 || c.sum(errorsOf) > 0 { // whoever met an error pauses
			continue
		}
		share := c.Figure(m)
		text := fmt.Sprintf("%s (%s)", c.Name, share.Text(m.Unit))
		switch {
		case share.Value >= nearlyAll*100:
			full = append(full, text)
		case share.Value < lostInHandOn*100 && w.Keys == 1:
			idle = append(idle, text)
		}
	}
	var found []finding
	if len(full) > 0 {
		found = append(found, finding{best, fmt.Sprintf("Held nearly all the time, so that shorter holds or more keys can make it faster but no other lock: %s.", strings.Join(full, ", "))})
	}
	if len(idle) > 0 {
		found = append(found, finding{costly, fmt.Sprintf("Most of the time nobody held the lock although clients wanted it, it was being handed on: %s.", strings.Join(idle, ", "))})
	}
	return found
}

// overloaded tells which locks could not keep up with an open loop's arrivals.
func overloaded(a arena) []finding {
	var found []finding
	for _, c := range a.cells {
		for _, run := range c.Used {
			at := slices.IndexFunc(run.Labels, func(label string) bool { return strings.HasPrefix(label, "overloaded: ") })
			if at >= 0 && !c.Suspect {
				found = append(found, finding{starving, fmt.Sprintf("%s could not keep up: %s.", a.at(c), strings.TrimPrefix(run.Labels[at], "overloaded: "))})
				break
			}
		}
	}
	return found
}

// busyMachine tells where the machine set the pace.
func busyMachine(a arena) []finding {
	limited, all := 0, 0
	for _, c := range a.cells {
		for _, run := range c.Used {
			all++
			if run.Hurried() {
				limited++
			}
		}
	}
	if limited == 0 {
		return nil
	}
	which := fmt.Sprintf("%d of %d runs with %d clients", limited, all, a.workload.Clients)
	return []finding{{caution, fmt.Sprintf("In %s the machine was busy: the locks may be faster than shown.", which)}}
}

// fastest is the lock with the highest throughput, and how sure that is. How fast
// arrivals or bursts follow each other is not the lock's doing.
func fastest(a arena) []finding {
	if a.workload.Rate > 0 || a.workload.Gather > 0 {
		return nil
	}
	return rank(a, "acq_per_s", "Highest throughput", 1)
}

// shortestWait is the lock whose slowest waits were the shortest for all clients.
func shortestWait(a arena) []finding {
	if a.workload.Gather > 0 { // the most of it is the gathering
		return nil
	}
	if a.workload.Rate > 0 {
		return rank(a, "wait_p99", "Shortest 99th percentile of the waits", -1)
	}
	return rank(a, "wait_per_client_p99", "Shortest 99th percentile of the waits, every client counting alike", -1)
}

// rank compares the two that are best, direction 1 for more and −1 for less. A
// lower bound is never the better one of two that are to be small.
func rank(a arena, name, title string, direction int) []finding {
	m := metric(name)
	cells := a.trusted(m)
	if len(cells) < 2 {
		return nil
	}
	slices.SortStableFunc(cells, func(x, y cell) int { return -direction * byValue(x.Figure(m), y.Figure(m)) })
	first, second := cells[0], cells[1]
	top, next := first.Figure(m), second.Figure(m)
	if top.AtLeast {
		return nil // the largest may be larger still, the smallest too
	}
	text := fmt.Sprintf("%s at %d clients: %s, %s", title, a.workload.Clients, first.Name, top.Text(m.Unit))
	ratio := first.Ratio(second.Summary, m)
	switch {
	case ratio != nil && ratio.Interval:
		text += fmt.Sprintf(", %.2f times that of %s (95 %% interval %.2f–%.2f over %d paired rounds)", ratio.Median, second.Name, ratio.Low, ratio.High, ratio.Rounds)
		if apart := direction > 0 && ratio.Low > 1 || direction < 0 && ratio.High < 1; !apart {
			text += ": not told apart"
		}
	default:
		text += fmt.Sprintf("; next %s, %s", second.Name, next.Text(m.Unit))
		if top.Value > 0 && next.Value > 0 && math.Min(top.Value/next.Value, next.Value/top.Value) >= level {
			text += ": too close to tell without more rounds (--runs 6)"
		}
	}
	return []finding{{best, text + "."}}
}
