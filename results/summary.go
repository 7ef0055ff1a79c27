package results

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/workloads"
)

// Summary is one strategy under one workload over all its runs. Its figures are medians,
// because one disturbed round of a noisy machine would move a mean.
type Summary struct {
	Strategy
	Point    string         // of a sweep, as Run.Point
	Workload workloads.Spec // with the first report's seed
	Runs     []Run          // every one, in the order in which they ran
	Used     []Run          // those that figures come from, see choose
	Invalid  bool           // no run could be trusted
}

// Usable says whether a run's figures may be believed: it is valid and did not fail.
func (r Run) Usable() bool { return r.Valid() && r.Failure == "" }

// Complete says whether a run may stand beside others: it is usable and was not cut short.
func (r Run) Complete() bool { return r.Usable() && !r.Partial }

// choose the runs that figures come from: the complete ones, where there is none those that
// were cut short, and where nothing can be trusted all.
func (s *Summary) choose() {
	s.Invalid = false
	for _, good := range []func(Run) bool{Run.Complete, Run.Usable} {
		s.Used = slices.DeleteFunc(slices.Clone(s.Runs), func(r Run) bool { return !good(r) })
		if len(s.Used) > 0 {
			return
		}
	}
	s.Used, s.Invalid = s.Runs, true
}

// Title is how tables name it.
func (s Summary) Title() string { return strings.TrimSpace(s.Name + " " + s.Point) }

// AnyInvalid says that at least one run cannot be trusted.
func (s Summary) AnyInvalid() bool { return s.Invalid || len(s.Used) < len(s.Runs) }

// Mark is put behind the figures of a strategy of which no run can be trusted.
func (s Summary) Mark() string {
	if s.Invalid {
		return "!"
	}
	return ""
}

// Summaries groups the report's runs by strategy and point, in the order in which they
// were asked for. What never ran is left out.
func (r *Report) Summaries() []Summary {
	return slices.DeleteFunc(r.asked(), func(s Summary) bool { return len(s.Runs) == 0 })
}

// Missing are the strategies, of a sweep at each point, that were to run and did not come
// to it.
func (r *Report) Missing() []Summary {
	return slices.DeleteFunc(r.asked(), func(s Summary) bool { return len(s.Runs) > 0 })
}

// asked is everything that was to be measured, or was.
func (r *Report) asked() []Summary {
	var all []Summary
	type place struct{ strategy, point string }
	index := map[place]int{}
	add := func(s Strategy, point string) *Summary {
		at, known := index[place{s.Name, point}]
		if !known {
			at = len(all)
			index[place{s.Name, point}] = at
			all = append(all, Summary{Strategy: s, Point: point, Workload: r.WorkloadOf(Run{Point: point})})
		}
		return &all[at]
	}
	for _, s := range r.Strategies {
		if len(r.Points) == 0 {
			add(s, "")
		}
		for _, point := range r.Points {
			add(s, point.Label)
		}
	}
	for _, run := range r.Runs {
		s := add(Strategy{Name: run.Strategy}, run.Point)
		s.Runs = append(s.Runs, run)
	}
	for i := range all {
		all[i].choose()
	}
	return all
}

// Summarise groups the runs of reports that were made under the same conditions
// by strategy and workload, in the order in which they were asked for. Rounds are
// numbered on from report to report, so that a pair is always of one session.
func Summarise(reports []*Report) []Summary {
	var all []Summary
	rounds := 0
	for _, r := range reports {
		latest := rounds
		for _, s := range r.Summaries() {
			for i := range s.Runs {
				s.Runs[i].Round += rounds
				latest = max(latest, s.Runs[i].Round)
			}
			at := slices.IndexFunc(all, func(known Summary) bool {
				return known.Name == s.Name && SameWorkload(known.Workload, s.Workload)
			})
			if at < 0 {
				all = append(all, s)
				at = len(all) - 1
			} else {
				all[at].Runs = append(all[at].Runs, s.Runs...)
			}
			all[at].choose()
		}
		rounds = latest
	}
	return all
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
// counted for safety the sum over all, since a broken lock is not excused by a disturbed
// measurement; nil where it is not known.
func (s Summary) Figure(m Metric) *Figure { return s.over(m, m.Of) }

func (s Summary) over(m Metric, value func(Run) *Figure) *Figure {
	if m.total {
		var sum *Figure
		for _, run := range s.Runs {
			if f := value(run); f != nil {
				if sum == nil {
					sum = &Figure{}
				}
				sum.Value += f.Value
			}
		}
		return sum
	}
	return MedianFigure(figures(s.Used, value))
}

// Figures are the metric's in the runs used, as far as they are known.
func (s Summary) Figures(m Metric) []Figure { return figures(s.Used, m.Of) }

func figures(runs []Run, value func(Run) *Figure) []Figure {
	var known []Figure
	for _, run := range runs {
		if f := value(run); f != nil {
			known = append(known, *f)
		}
	}
	return known
}

// Exactly are the metric's figures in the runs used that are not lower bounds, the smallest
// first.
func (s Summary) Exactly(m Metric) []Figure {
	exact := figures(s.Used, m.exact)
	slices.SortStableFunc(exact, byValue)
	return exact
}

// Digits are those that a ratio of both strategies' metric is known to, 0 being three.
func (s Summary) Digits(base Summary, m Metric) int {
	digits := 0
	for _, one := range []Summary{s, base} {
		if f := one.Figure(m); f != nil {
			digits = fewest(digits, f.Digits)
		}
	}
	return digits
}

// Range is what the metric's values in the runs used lie between; false where there are
// not at least two, or one is a lower bound.
func (s Summary) Range(m Metric) (low, high float64, ok bool) {
	values := s.Exactly(m)
	if len(values) < 2 || len(values) < len(s.Figures(m)) {
		return 0, 0, false
	}
	return values[0].Value, values[len(values)-1].Value, true
}

// Interval is between what the metric's median lies with 95 % confidence, or where there are
// fewer than six runs between what its values lie; a sum is what it is.
func (s Summary) Interval(m Metric) (low, high float64) {
	var values []float64
	for _, f := range s.Figures(m) {
		values = append(values, f.Value)
	}
	if f := s.Figure(m); m.total && f != nil {
		values = []float64{f.Value}
	}
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	low, high, _ = interval(values, usual)
	return low, high
}

// Verdict says in a word or two whether what the strategy claims held in every run. Of a
// run that cannot be trusted only what broke is known.
func (s Summary) Verdict() string {
	var broken []string
	trusted := 0
	for _, run := range s.Runs {
		for _, claim := range run.Safety.Broken {
			name, _, _ := strings.Cut(claim, ":") // the notes say the rest
			if !slices.Contains(broken, name) {
				broken = append(broken, name)
			}
		}
		if run.Valid() {
			trusted++
		}
	}
	verdict := "held"
	switch {
	case len(broken) > 0:
		verdict = "BROKEN: " + strings.Join(broken, ", ")
	case trusted == 0:
		verdict = "INVALID" // its runs cannot be trusted
	case len(s.Claims) == 0:
		verdict = "no claim"
	case trusted < len(s.Runs):
		verdict = fmt.Sprintf("held in %d of %d", trusted, len(s.Runs))
	}
	if s.Caveat != "" {
		verdict += " (unsafe)"
	}
	return verdict
}
