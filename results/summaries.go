package results

import (
	"encoding/json"
	"slices"

	"github.com/lockbench/lockbench/workloads"
)

// Summary is one strategy under one workload over all its runs.
type Summary struct {
	Strategy
	Point    string         // of a sweep, as Run.Point
	Workload workloads.Spec // with the first report's seed
	Runs     []Run          // every one, in the order in which they ran
	Used     []Run          // those that figures come from: the valid ones, or all where none is
	Suspect  bool           // no run could be trusted

	of summary
}

// Summarise groups the runs of reports that were made under the same conditions
// by strategy and workload, in the order in which they were asked for. Rounds are
// numbered on from report to report, so that a pair is always of one session.
func Summarise(reports []*Report) []Summary {
	var all []summary
	rounds := 0
	for _, r := range reports {
		latest := rounds
		for _, s := range summarise(r) {
			for i := range s.runs {
				s.runs[i].Round += rounds
				latest = max(latest, s.runs[i].Round)
			}
			at := slices.IndexFunc(all, func(known summary) bool {
				return known.Name == s.Name && SameWorkload(known.workload, s.workload)
			})
			if at < 0 {
				all = append(all, s)
				at = len(all) - 1
			} else {
				all[at].runs = append(all[at].runs, s.runs...)
			}
			all[at].choose()
		}
		rounds = latest
	}
	summaries := make([]Summary, len(all))
	for i, s := range all {
		summaries[i] = Summary{
			Strategy: s.Strategy, Point: s.point, Workload: s.workload,
			Runs: s.runs, Used: s.used, Suspect: s.suspect, of: s,
		}
	}
	return summaries
}

// SameWorkload says whether two workloads differ in no more than what chance
// draws in them.
func SameWorkload(a, b workloads.Spec) bool {
	a.Seed, b.Seed = 0, 0
	first, err := json.Marshal(a)
	second, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(first) == string(second)
}

// Figure is a metric of the strategy: the median of the runs used, or for what is
// counted for safety the sum over all; nil where it is not known.
func (s Summary) Figure(m Metric) *Figure { return m.over(s.of) }

// Range is what the metric's exactly known values in the runs used lie between;
// false where there are not at least two.
func (s Summary) Range(m Metric) (low, high float64, ok bool) {
	values, exact := m.values(s.of)
	if !exact || len(values) < 2 {
		return 0, 0, false
	}
	return slices.Min(values), slices.Max(values), true
}

// Text writes the figure in its metric's unit, "–" where it is not known.
func (f *Figure) Text(u Unit) string {
	if f == nil {
		return unknown
	}
	return f.in(u)
}

// Verdict says in a word or two whether what the strategy claims held in every
// run.
func (s Summary) Verdict() string { return s.of.verdict() }

// Describe are the lines that say what was measured on what, each with its label.
func (r *Report) Describe() [][2]string {
	lines := [][2]string{{"workload", workload(r)}, {"sweep", sweep(r.Points)}, {"redis", server(r.Redis)}}
	if len(r.Parts) == 0 {
		lines = append(lines, [2]string{"machine", machine(r.Environment)})
	}
	for _, part := range r.Parts {
		lines = append(lines, [2]string{"machine", part.Generator + ": " + machine(part.Environment)})
	}
	lines = append(lines, [2]string{"placement", placement(r)})
	if r.Floors != nil {
		lines = append(lines, [2]string{"floors", floors(r.Floors)})
	}
	return slices.DeleteFunc(lines, func(line [2]string) bool { return line[1] == "" })
}

// DescribeWorkload says a workload in a line.
func DescribeWorkload(w workloads.Spec) string { return workload(&Report{Workload: w}) }
