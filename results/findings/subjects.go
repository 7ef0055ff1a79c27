package findings

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results"
)

// about makes findings from one strategy's runs at one point.
type about func(results.Summary) []Finding

// each applies find to each strategy. It merges findings that differ only in their figures.
func each(find about) func([]results.Summary) []Finding {
	return func(all []results.Summary) []Finding {
		var merged []Finding
		var texts, titles []string
		for _, s := range all {
			for _, f := range find(s) {
				texts, titles = append(texts, f.Text), append(titles, s.Title())
			}
		}
		for _, group := range alike(texts) {
			f := Finding{Text: group.text}
			for _, i := range group.members {
				f.Strategies = append(f.Strategies, titles[i])
			}
			f.Strategies = atAllPoints(f.Strategies, all)
			merged = append(merged, f)
		}
		return merged
	}
}

// atAllPoints removes duplicates; a strategy whose points are all listed gets one entry.
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

// busiest limits a rule to the largest number of clients: fewer clients show the same effects
// more weakly.
func busiest(find func([]results.Summary) []Finding) func([]results.Summary) []Finding {
	return func(all []results.Summary) []Finding {
		if len(all) == 0 {
			return nil
		}
		return find(with(all, byClients(all)[len(all)-1]))
	}
}

// byClients sorts summaries by the number of clients.
func byClients(all []results.Summary) []results.Summary {
	return slices.SortedStableFunc(slices.Values(all),
		func(a, b results.Summary) int { return a.Workload.Clients - b.Workload.Clients })
}

// with returns the summaries with the same workload as one.
func with(all []results.Summary, one results.Summary) []results.Summary {
	return slices.DeleteFunc(slices.Clone(all),
		func(s results.Summary) bool { return !results.SameWorkload(s.Workload, one.Workload) })
}

// by orders strategies by a metric that is known of all of them.
func by(m results.Metric) func(a, b results.Summary) int {
	return func(a, b results.Summary) int { return cmp.Compare(a.Figure(m).Value, b.Figure(m).Value) }
}

// extremes returns the strategies with the smallest and the largest figure; it must be known of all.
func extremes(all []results.Summary, m results.Metric) (least, most results.Summary) {
	return slices.MinFunc(all, by(m)), slices.MaxFunc(all, by(m))
}

// rivals returns the strategies that can be compared by a metric: valid, known, and locks that
// kept exclusion.
func rivals(all []results.Summary, m results.Metric) []results.Summary {
	return slices.DeleteFunc(slices.Clone(all), func(s results.Summary) bool {
		violations := s.Figure(results.MustMetric("violations"))
		excludes := slices.Contains(s.Claims, "exclusion") && s.Caveat == "" && violations != nil &&
			violations.Value == 0
		return s.Invalid || !excludes || s.Figure(m) == nil
	})
}

// leftOut names the strategies that rivals leaves out although a statement about the best or the worst would be
// another with them, with the reason: their figure is beyond those that are compared, or not known.
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

// whyNoRival says why a strategy is not among the rivals.
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

// say returns one finding; none for an empty text.
func say(text string) []Finding {
	if text == "" {
		return nil
	}
	return []Finding{{Text: text}}
}

// collect joins what all runs have, and returns the number of runs that have any.
func collect(s results.Summary, of func(results.Run) []string) (all []string, n int) {
	for _, run := range s.Runs {
		if some := of(run); len(some) > 0 {
			all, n = append(all, some...), n+1
		}
	}
	return all, n
}

// inText matches the figures in a text, also as Go writes durations, ranges of them, and names of generators.
var inText = regexp.MustCompile(lasting + `(–` + lasting + `)?|(generator )?\d+(\.\d+)?(–\d+(\.\d+)?)?`)

// lasting matches a duration that is one word: 1m45s, 250ms.
const lasting = `(\d+h)?(\d+m)?\d+(\.\d+)?(s|ms|µs|ns)\b`

// kindOf returns what texts have in common that differ only in their figures.
func kindOf(text string) string {
	return inText.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "generator ") {
			return found
		}
		return "#"
	})
}

// group is a set of texts that differ only in their figures.
type group struct {
	text    string // the first one, with each figure replaced by the range over all of them
	members []int
}

// alike groups the texts that differ only in their figures.
func alike(texts []string) []group {
	var groups []group
	known := map[string]int{}
	for i, text := range texts {
		kind := kindOf(text)
		at, before := known[kind]
		if !before {
			at = len(groups)
			known[kind] = at
			groups = append(groups, group{})
		}
		groups[at].members = append(groups[at].members, i)
	}
	for i := range groups {
		groups[i].text = groups[i].spanned(texts)
	}
	return groups
}

// Alike joins the findings about the same strategies that differ only in their figures, as those of several
// workloads do. members are the indices of what each is made of.
func Alike(all []Finding) (joined []Finding, members [][]int) {
	var texts []string
	known := map[string]int{}
	for i, f := range all {
		texts = append(texts, f.Text)
		kind := fmt.Sprintf("%q %q %s", f.Sort, f.Strategies, kindOf(f.Text))
		at, before := known[kind]
		if !before {
			at = len(joined)
			known[kind] = at
			joined, members = append(joined, f), append(members, nil)
		}
		members[at] = append(members[at], i)
	}
	for i := range joined {
		joined[i].Text = group{members: members[i]}.spanned(texts)
	}
	return joined, members
}

func (g group) spanned(texts []string) string {
	at := -1
	return inText.ReplaceAllStringFunc(texts[g.members[0]], func(string) string {
		at++
		var figures []string
		for _, i := range g.members {
			low, high, span := strings.Cut(inText.FindAllString(texts[i], -1)[at], "–")
			if figures = append(figures, low); span {
				figures = append(figures, high)
			}
		}
		slices.SortFunc(figures, func(a, b string) int { return cmp.Compare(value(a), value(b)) })
		low, high := figures[0], figures[len(figures)-1]
		if low == high {
			return low
		}
		return low + "–" + high
	})
}

func value(figure string) float64 {
	if d, err := time.ParseDuration(figure); err == nil {
		return d.Seconds()
	}
	x, _ := strconv.ParseFloat(figure, 64) // the pattern matches nothing else
	return x
}

// once returns each text once; texts that differ only in figures count as one.
func once(texts []string) []string {
	var all []string
	for _, g := range alike(texts) {
		all = append(all, g.text)
	}
	return all
}
