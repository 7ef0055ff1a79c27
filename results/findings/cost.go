package findings

import (
	"slices"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Below these limits, cheapest and herds report no difference in commands per acquisition.
const (
	fewCommands = 5.0  // smallest growth that herds reports, in commands per acquisition
	grows       = 2.0  // smallest growth that herds reports, as a factor
	flat        = 1.25 // ratio of the most to the fewest commands below which cheapest reports nothing
	manyMore    = 5.0  // smallest ratio of the numbers of clients at which herds compares
)

// cheapest returns a finding that names the lock in Redis with the fewest commands per acquisition and the one with the
// most.
func cheapest(all []results.Summary) []Finding {
	m := results.MustMetric("commands_per_acq")
	locks := inRedis(all)
	compared := rivals(locks, m)
	if len(compared) < 2 {
		return nil
	}
	least, most := extremes(compared, m)
	if most.Figure(m).Value < flat*least.Figure(m).Value {
		return nil
	}
	fewest := alikeIn(compared, m, least)
	beyond := func(f float64) bool { return f < least.Figure(m).Value || f > most.Figure(m).Value }
	return say("of the locks in Redis, %s needed the fewest commands per acquisition, %s%s, and %s the "+
		"most, %s%s", titles(fewest), brief(least, m), passedWithin(fewest), titles(alikeIn(compared, m, most)),
		brief(most, m), leftOut(locks, m, beyond))
}

// alikeIn returns the strategies whose figure, as Summary.Brief writes it, equals that of the given strategy.
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

// passedWithin returns, in brackets, the share of passes of the lock that stayed within a process; "" if it is not
// known, or if there was only one process. A lock that prefers clients of the holder's process needs few commands only
// as long as such clients wait.
func passedWithin(all []results.Summary) results.Phrase {
	m := results.MustMetric("passes_within_instance")
	unknown := func(s results.Summary) bool { return s.Figure(m) == nil || s.Workload.Instances < 2 }
	if slices.ContainsFunc(all, unknown) {
		return nil
	}
	least, most := extremes(all, m)
	low, high := results.Measured(least.Figure(m).Value, "%.0f"), results.Measured(most.Figure(m).Value, "%.0f")
	percent := results.Phrasef("%s", high)
	if low.Text != high.Text {
		percent = results.Phrasef("%s to %s", low, high)
	}
	return results.Phrasef(" (%s % of the passes stayed within a process)", percent)
}

// inRedis returns the strategies that lock only in Redis. Commands at other stores are not comparable with Redis
// commands.
func inRedis(all []results.Summary) []results.Summary {
	m := results.MustMetric("commands_per_acq")
	return slices.DeleteFunc(slices.Clone(all), func(s results.Summary) bool {
		f := s.Figure(m)
		return s.Store != "" || f != nil && f.Value == 0
	})
}

// herds names the strategies whose commands per acquisition grow with the number of clients. A sweep may also vary
// other options, so herds compares only workloads that differ in nothing but the number of clients.
func herds(all []results.Summary) []Finding {
	if len(all) == 0 {
		return nil
	}
	sorted := byClients(all)
	many := sorted[len(sorted)-1]
	few := sorted[slices.IndexFunc(sorted, func(s results.Summary) bool { return onlyClientsDiffer(s, many) })]
	if float64(many.Workload.Clients) < manyMore*float64(few.Workload.Clients) {
		return nil
	}
	m := results.MustMetric("commands_per_acq")
	var growing []results.Phrase
	for _, s := range rivals(with(all, many), m) {
		before := slices.IndexFunc(sorted, func(other results.Summary) bool {
			return other.Name == s.Name && !other.Invalid && other.Figure(m) != nil &&
				results.SameWorkload(other.Workload, few.Workload)
		})
		if before < 0 {
			continue
		}
		from, to := sorted[before].Figure(m), s.Figure(m)
		if to.Value >= grows*from.Value && to.Value >= from.Value+fewCommands {
			growing = append(growing, results.Phrasef("%s (%s → %s)", s.Name, brief(sorted[before], m), brief(s, m)))
		}
	}
	if len(growing) == 0 {
		return nil
	}
	return say("commands per acquisition grow with the clients, from %s to %s clients: %s",
		few.Workload.Clients, many.Workload.Clients, results.JoinPhrases(growing, ", "))
}

// onlyClientsDiffer reports whether two workloads are equal except for the clients, and for the number of instances,
// which follows from the clients.
func onlyClientsDiffer(a, b results.Summary) bool {
	one, other := a.Workload, b.Workload
	for _, w := range []*workloads.Spec{&one, &other} {
		if w.Instances == min(workloads.DefaultInstances, w.Clients) {
			w.Instances = 0
		}
		w.Clients = 0
	}
	return results.SameWorkload(one, other)
}
