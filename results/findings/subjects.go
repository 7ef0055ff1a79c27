package findings

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// about derives findings from one strategy's runs at one point.
type about func(results.Summary) []Finding

// each returns a rule that applies find to each strategy, and merges findings that differ only in their figures.
func each(find about) func([]results.Summary) []Finding {
	return func(all []results.Summary) []Finding {
		var merged []Finding
		var found []Finding
		var titles []string
		for _, s := range all {
			for _, f := range find(s) {
				found, titles = append(found, f), append(titles, s.Title())
			}
		}
		joined, members := Alike(found)
		for i, f := range joined {
			for _, member := range members[i] {
				f.Strategies = append(f.Strategies, titles[member])
			}
			f.Strategies = atAllPoints(f.Strategies, all)
			merged = append(merged, f)
		}
		return merged
	}
}

// atAllPoints removes duplicate titles. If all points of a strategy are listed, its bare name replaces them.
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

// busiest limits a rule to the workload with the most clients, because the same effects are weaker with fewer clients.
func busiest(find func([]results.Summary) []Finding) func([]results.Summary) []Finding {
	return func(all []results.Summary) []Finding {
		if len(all) == 0 {
			return nil
		}
		return find(with(all, byClients(all)[len(all)-1]))
	}
}

func byClients(all []results.Summary) []results.Summary {
	return slices.SortedStableFunc(slices.Values(all),
		func(a, b results.Summary) int { return a.Workload.Clients - b.Workload.Clients })
}

// with returns the summaries that were measured under the same workload as the given summary.
func with(all []results.Summary, one results.Summary) []results.Summary {
	return slices.DeleteFunc(slices.Clone(all),
		func(s results.Summary) bool { return !results.SameWorkload(s.Workload, one.Workload) })
}

// by orders strategies by a metric, which must be known for all of them.
func by(m results.Metric) func(a, b results.Summary) int {
	return func(a, b results.Summary) int { return cmp.Compare(a.Figure(m).Value, b.Figure(m).Value) }
}

// extremes returns the strategies with the smallest and the largest figure, which must be known for all of them.
func extremes(all []results.Summary, m results.Metric) (least, most results.Summary) {
	return slices.MinFunc(all, by(m)), slices.MaxFunc(all, by(m))
}

// rivals returns the strategies that can be compared by a metric: they have a valid run, the figure is known, and they
// claim exclusion and kept it.
func rivals(all []results.Summary, m results.Metric) []results.Summary {
	return slices.DeleteFunc(slices.Clone(all), func(s results.Summary) bool {
		violations := s.Figure(results.MustMetric("violations"))
		excludes := slices.Contains(s.Claims, "exclusion") && s.Caveat == "" && violations != nil &&
			violations.Value == 0
		return s.Invalid || !excludes || s.Figure(m) == nil
	})
}

// leftOut names, with the reasons, the strategies that rivals leaves out although they might be the best or the worst:
// their figure is beyond those of all rivals, or is not known.
func leftOut(all []results.Summary, m results.Metric, beyond func(float64) bool) string {
	var names []string
	for _, s := range all {
		if f := s.Figure(m); len(rivals([]results.Summary{s}, m)) == 0 && (f == nil || beyond(f.Value)) {
			names = append(names, s.Title()+" ("+whyNoRival(s)+")")
		}
	}
	if names == nil {
		return ""
	}
	return "; not compared" + named(names, len(names))
}

// whyNoRival returns why a strategy is not among the rivals.
func whyNoRival(s results.Summary) string {
	violations := s.Figure(results.MustMetric("violations"))
	switch {
	case s.Invalid:
		return "no valid run"
	case s.Caveat != "" || violations != nil && violations.Value > 0:
		return "unsafe"
	case !slices.Contains(s.Claims, "exclusion"):
		return "does not claim exclusion"
	case violations == nil:
		return "exclusion not audited"
	}
	return "not known"
}

// say returns a single finding with this text, in which each "%s" is replaced by the next part; nil if the text is
// empty.
func say(text string, parts ...any) []Finding {
	p := results.Phrasef(text, parts...)
	if text = p.String(); text == "" {
		return nil
	}
	return []Finding{{Remark: results.PlainText(text), phrase: p}}
}

// brief returns a strategy's figure as a quantity whose text is that of Summary.Brief.
func brief(s results.Summary, m results.Metric) results.Quantity {
	return results.Written(s.Figure(m).Value, s.Brief(m))
}

// exact returns a figure as a quantity with all its known digits.
func exact(f *results.Figure, u results.Unit) results.Quantity {
	return results.Written(f.Value, f.Text(u))
}

// collect returns the phrases that of returns for all runs, and the number of runs that have at least one.
func collect(s results.Summary, of func(results.Run) []results.Phrase) (all []results.Phrase, n int) {
	for _, run := range s.Runs {
		if some := of(run); len(some) > 0 {
			all, n = append(all, some...), n+1
		}
	}
	return all, n
}

func phrases(all results.Remarks) (texts []results.Phrase) {
	for _, r := range all {
		texts = append(texts, r.Phrase())
	}
	return texts
}

// alike groups the indices of equal kinds. The groups are in the order of their first indices.
func alike(kinds []string) (groups [][]int) {
	known := map[string]int{}
	for i, kind := range kinds {
		at, before := known[kind]
		if !before {
			at = len(groups)
			known[kind] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

// Alike joins findings that are about the same strategies and differ only in their figures, for example the findings of
// several workloads. members[i] holds the indices in all of the findings that joined[i] combines.
func Alike(all []Finding) (joined []Finding, members [][]int) {
	var kinds []string
	for _, f := range all {
		kinds = append(kinds, fmt.Sprintf("%q %q %s", f.Sort, f.Strategies, f.phrase.Kind()))
	}
	members = alike(kinds)
	for _, group := range members {
		var texts []results.Phrase
		for _, i := range group {
			texts = append(texts, all[i].phrase)
		}
		f := all[group[0]]
		f.phrase = results.Spanned(texts)
		f.Text = f.phrase.String()
		joined = append(joined, f)
	}
	return joined, members
}

// once joins texts with semicolons. Texts that differ only in their figures are merged into one with ranges.
func once(texts []results.Phrase) results.Phrase {
	var kinds []string
	for _, p := range texts {
		kinds = append(kinds, p.Kind())
	}
	var all []results.Phrase
	for _, group := range alike(kinds) {
		var same []results.Phrase
		for _, i := range group {
			same = append(same, texts[i])
		}
		all = append(all, results.Spanned(same))
	}
	return results.JoinPhrases(all, "; ")
}
