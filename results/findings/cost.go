package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Limits for a finding about commands.
const (
	muchDearer  = 3.0  // times the commands of the cheapest lock
	fewCommands = 5.0  // commands more than the cheapest lock, at least
	grows       = 2.0  // times the commands with the fewest clients
	flat        = 1.25 // times at most: no growth
	manyMore    = 5.0  // times the clients, for a statement about growth
)

// cost returns the rules on what a lock costs Redis, and its clients between two holds.
func cost() []rule {
	return []rule{
		{Kind{Sort: Cost}, busiest(besideCheapest)},
		{Kind{Sort: Cost}, busiest(acrossStrategies(handedOn))},
		{Kind{Sort: Cost}, herds},
	}
}

// besideCheapest compares the commands of strategies with those of the cheapest one.
func besideCheapest(all []results.Summary) []Finding {
	m := metric("commands_per_acq")
	all = inRedis(all)
	if len(all) < 2 {
		return nil
	}
	cheapest, _ := cheapestAndDearest(all)
	least := cheapest.Figure(m)
	var dear []string
	for _, s := range all {
		if f := s.Figure(m); f.Value >= muchDearer*least.Value && f.Value >= least.Value+fewCommands {
			dear = append(dear, fmt.Sprintf("%s %s (%.1f times)", s.Name, f.Text(results.Number), f.Value/least.Value))
		}
	}
	if len(dear) == 0 {
		return nil
	}
	return say(fmt.Sprintf("Redis executes %s commands for an acquisition of %s%s, and for one of %s",
		least.Text(results.Number), cheapest.Name, passedWithin([]results.Summary{cheapest}), strings.Join(dear, ", ")))
}

// passedWithin says how many passes stayed within a process, in brackets; "" if that is not known,
// or there was a single process. A lock that prefers its own process needs few commands only as
// long as clients wait there.
func passedWithin(all []results.Summary) string {
	m := metric("passes_within_instance")
	var shares []results.Figure
	for _, s := range all {
		share := s.Figure(m)
		if share == nil || s.Workload.Instances < 2 {
			return ""
		}
		shares = append(shares, *share)
	}
	low, high := slices.MinFunc(shares, byValue), slices.MaxFunc(shares, byValue)
	percent := fmt.Sprintf("%.0f", high.Value)
	if least := fmt.Sprintf("%.0f", low.Value); least != percent {
		percent = least + " to " + percent
	}
	return fmt.Sprintf(" (%s %% of the passes stayed within a process)", percent)
}

func byValue(a, b results.Figure) int { return cmp.Compare(a.Value, b.Value) }

// inRedis returns the rivals that lock in Redis only: another store's commands are not
// comparable.
func inRedis(all []results.Summary) []results.Summary {
	m := metric("commands_per_acq")
	return slices.DeleteFunc(rivals(all, m),
		func(s results.Summary) bool { return s.Store != "" || s.Figure(m).Value == 0 })
}

func cheapestAndDearest(all []results.Summary) (cheapest, dearest results.Summary) {
	byCommands := func(a, b results.Summary) int {
		m := metric("commands_per_acq")
		return cmp.Compare(a.Figure(m).Value, b.Figure(m).Value)
	}
	return slices.MinFunc(all, byCommands), slices.MaxFunc(all, byCommands)
}

// handedOn reports locks that nobody holds for most of the time.
func handedOn(s results.Summary) []Finding {
	held := utilised(s)
	if held == nil || held.Value >= lostInHandOn || s.Workload.Keys > 1 {
		return nil
	}
	return say(fmt.Sprintf("held %s of the time although clients always wanted it: for the rest it was being handed on",
		held.Text(results.Percent)))
}

// herds says for which strategies the cost grows with the number of clients, and for which it
// does not.
func herds(all []results.Summary) []Finding {
	return herdsIn(all, func(s results.Summary, m results.Metric) string { return s.Figure(m).Text(m.Unit) })
}

// herdsIn is herds with a function that writes the figures.
func herdsIn(all []results.Summary, write func(results.Summary, results.Metric) string) []Finding {
	if len(all) == 0 {
		return nil
	}
	sorted := byClients(all)
	few, many := sorted[0], sorted[len(sorted)-1]
	if float64(many.Workload.Clients) < manyMore*float64(few.Workload.Clients) {
		return nil
	}
	m := metric("commands_per_acq")
	var growing, level []string
	for _, s := range rivals(with(all, many), m) {
		before := slices.IndexFunc(sorted, func(other results.Summary) bool {
			return other.Name == s.Name && !other.Invalid && other.Figure(m) != nil &&
				results.SameWorkload(other.Workload, few.Workload)
		})
		if before < 0 {
			continue
		}
		from, to := sorted[before].Figure(m), s.Figure(m)
		text := fmt.Sprintf("%s (%s → %s)", s.Name, write(sorted[before], m), write(s, m))
		switch {
		case to.Value >= grows*from.Value && to.Value >= from.Value+fewCommands:
			growing = append(growing, text)
		case to.Value <= flat*from.Value && from.Value <= flat*to.Value:
			level = append(level, text)
		}
	}
	between := fmt.Sprintf("from %d to %d clients", few.Workload.Clients, many.Workload.Clients)
	var found []Finding
	if len(growing) > 0 {
		found = say(fmt.Sprintf("Commands per acquisition grow with the clients, a herd, %s: %s", between,
			strings.Join(growing, ", ")))
	}
	if len(level) > 0 {
		found = append(found, say(fmt.Sprintf("Commands per acquisition hardly change %s: %s", between,
			strings.Join(level, ", ")))...)
	}
	return found
}
