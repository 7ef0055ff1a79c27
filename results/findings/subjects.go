package findings

import (
	"slices"

	"github.com/lockbench/lockbench/results"
)

// about finds something in one strategy's runs at one point.
type about func(results.Summary) []Finding

// perStrategy finds something in each strategy. Points of a sweep at which it differs in its
// figures only are one finding.
func perStrategy(find about) func([]results.Summary) []Finding { return subjects(find, true) }

// acrossStrategies is each, where strategies too are one finding.
func acrossStrategies(find about) func([]results.Summary) []Finding { return subjects(find, false) }

func subjects(find about, apart bool) func([]results.Summary) []Finding {
	return func(all []results.Summary) []Finding {
		var single, merged []Finding
		var texts, names []string
		for _, s := range all {
			for _, f := range find(s) {
				f.Strategies = []string{s.Title()}
				single, texts, names = append(single, f), append(texts, f.Text), append(names, s.Name)
			}
		}
		if !apart {
			names = nil
		}
		for _, group := range alike(texts, names) {
			f := Finding{Text: group.text}
			for _, i := range group.members {
				f.Strategies = append(f.Strategies, single[i].Strategies...)
				f.Evidence = append(f.Evidence, single[i].Evidence...)
			}
			f.Strategies = atAllPoints(f.Strategies, all)
			merged = append(merged, f)
		}
		return merged
	}
}

// atAllPoints has each title once, and for those of all points of a strategy its name.
func atAllPoints(titles []string, all []results.Summary) []string {
	var short []string
	for _, s := range all {
		if !slices.Contains(titles, s.Title()) {
			continue
		}
		name := s.Name
		if slices.ContainsFunc(all, func(other results.Summary) bool {
			return other.Name == s.Name && !slices.Contains(titles, other.Title())
		}) {
			name = s.Title()
		}
		if !slices.Contains(short, name) {
			short = append(short, name)
		}
	}
	return short
}

// busiest has a rule look at the largest number of clients: with fewer there is less of the
// same.
func busiest(find func([]results.Summary) []Finding) func([]results.Summary) []Finding {
	return func(all []results.Summary) []Finding {
		if len(all) == 0 {
			return nil
		}
		return find(with(all, byClients(all)[len(all)-1]))
	}
}

// byClients are summaries with the fewest clients first.
func byClients(all []results.Summary) []results.Summary {
	return slices.SortedStableFunc(slices.Values(all), func(a, b results.Summary) int { return a.Workload.Clients - b.Workload.Clients })
}

// with are those that met the workload of one of them.
func with(all []results.Summary, one results.Summary) []results.Summary {
	return slices.DeleteFunc(slices.Clone(all), func(s results.Summary) bool { return !results.SameWorkload(s.Workload, one.Workload) })
}

// metric is one that the tests have seen to exist.
func metric(name string) results.Metric {
	m, ok := results.FindMetric(name)
	if !ok {
		panic("findings: no metric " + name)
	}
	return m
}

// rivals are those that may be compared by a metric: measured, and locks that excluded.
func rivals(all []results.Summary, m results.Metric) []results.Summary {
	return slices.DeleteFunc(slices.Clone(all), func(s results.Summary) bool {
		violations := s.Figure(metric("violations"))
		excludes := slices.Contains(s.Claims, "exclusion") && s.Caveat == "" && violations != nil && violations.Value == 0
		return s.Invalid || !excludes || s.Figure(m) == nil
	})
}

// say is one finding, or none.
func say(text string, evidence ...Evidence) []Finding {
	if text == "" {
		return nil
	}
	return []Finding{{Text: text, Evidence: evidence}}
}

// collect puts together what all runs have of something, and says of how many it is.
func collect(s results.Summary, of func(results.Run) []string) (all []string, n int) {
	for _, run := range s.Runs {
		if some := of(run); len(some) > 0 {
			all, n = append(all, some...), n+1
		}
	}
	return all, n
}

// evidence is a strategy's figure.
func evidence(s results.Summary, name string) Evidence {
	m := metric(name)
	return Evidence{Strategy: s.Title(), Metric: name, Unit: m.Unit, Value: s.Figure(m)}
}

// runs are so many of a strategy's.
func runs(s results.Summary, n int) Evidence {
	return Evidence{Strategy: s.Title(), Metric: "runs", Value: &results.Figure{Value: float64(n)}}
}
