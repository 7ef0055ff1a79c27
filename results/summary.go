package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/workloads"
)

// Summary holds all runs of one strategy under one workload. Its figures are medians, because
// one disturbed round of a noisy machine would move a mean.
type Summary struct {
	Strategy
	Point    string         // of a sweep: as in Run.Point
	Workload workloads.Spec // with the first report's seed
	Runs     []Run          // all runs, in the order in which they ran
	Used     []Run          // the runs from which figures are computed, see choose
	Invalid  bool           // no run could be trusted
	first    *Summary       // the first strategy at the same point
	rounds   int            // planned
}

// isFirst reports whether the strategy is the one with which tables compare the others at the same point.
func (s Summary) isFirst() bool { return s.first == nil || s.Title() == s.first.Title() }

// Usable reports whether a run's figures can be trusted: it is valid and did not fail.
func (r Run) Usable() bool { return r.Valid() && r.Failure == "" }

// Complete reports whether a run can be compared with others: it is usable and was not cut short.
func (r Run) Complete() bool { return r.Usable() && !r.Partial }

// choose selects the runs for the figures. It selects the complete runs or, if there are none, the usable runs that
// were cut short. If no run is usable, it selects all.
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

// Title returns the strategy's name in tables. In a sweep, the point follows the name.
func (s Summary) Title() string { return titled(s.Name, s.Point) }

// Title returns the name of the run's strategy. In a sweep, the point follows the name.
func (r Run) Title() string { return titled(r.Strategy, r.Point) }

func titled(strategy, point string) string { return strings.TrimSpace(strategy + " " + point) }

// AnyInvalid reports whether the figures leave out a run, or no run can be trusted.
func (s Summary) AnyInvalid() bool { return s.Invalid || len(s.Used) < len(s.Runs) }

// Mark returns "!", which tables add to the figures of a strategy if no run of it can be trusted; otherwise "".
func (s Summary) Mark() string {
	if s.Invalid {
		return "!"
	}
	return ""
}

// Summaries groups the report's runs by strategy and point, in the order of the request. It leaves out strategies and
// points that did not run.
func (r *Report) Summaries() []Summary {
	all := slices.DeleteFunc(r.Asked(), func(s Summary) bool { return len(s.Runs) == 0 })
	for i := range all {
		same := func(other Summary) bool { return other.Point == all[i].Point }
		all[i].first = &all[slices.IndexFunc(all, same)]
	}
	return all
}

// Missing returns the strategies that were planned but did not run. In a sweep, it treats each point separately.
func (r *Report) Missing() []Summary {
	return slices.DeleteFunc(r.Asked(), func(s Summary) bool { return len(s.Runs) > 0 })
}

// Asked returns every strategy that was planned or ran. In a sweep, it returns one Summary for each point.
func (r *Report) Asked() []Summary {
	var all []Summary
	type place struct{ strategy, point string }
	index := map[place]int{}
	add := func(s Strategy, point string) *Summary {
		at, known := index[place{s.Name, point}]
		if !known {
			at = len(all)
			index[place{s.Name, point}] = at
			all = append(all, Summary{
				Strategy: s, Point: point, Workload: r.WorkloadOf(Run{Point: point}), rounds: r.Rounds,
			})
		}
		return &all[at]
	}
	for _, s := range r.Strategies {
		for _, point := range r.Planned() {
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

// SameWorkload reports whether two workloads are equal apart from their seeds.
func SameWorkload(a, b workloads.Spec) bool {
	a.Seed, b.Seed = 0, 0
	first, err := json.Marshal(a)
	second, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(first) == string(second)
}

// Figure returns a metric of the strategy: the median of the used runs. For safety counts it is the sum over all runs,
// because an invalid run does not excuse a broken lock. It returns nil if the metric is not known.
func (s Summary) Figure(m Metric) *Figure { return s.over(m, m.Of) }

func (s Summary) over(m Metric, value func(Run) *Figure) *Figure {
	if m.is&summed != 0 {
		return sum(s.Runs, value)
	}
	known := figures(s.Used, value)
	if m.is&everyRun != 0 && len(known) < len(s.Used) {
		return nil
	}
	return MedianFigure(known)
}

// sum adds up a count over runs. If some runs have no count, the sum is only a lower bound. If this bound would be 0,
// which says nothing, sum returns nil.
func sum(runs []Run, value func(Run) *Figure) *Figure {
	all := figures(runs, value)
	total := &Figure{AtLeast: len(all) < len(runs)}
	for _, f := range all {
		total.Value += f.Value
	}
	if len(all) == 0 || total.AtLeast && total.Value == 0 {
		return nil
	}
	return total
}

// HoldAsked returns the median, over the used runs, of the mean hold that the workload requested, in nanoseconds; nil
// if it requested none.
func (s Summary) HoldAsked() *Figure {
	return MedianFigure(figures(s.Used, func(r Run) *Figure { return figure(r.Speed.HoldAsked) }))
}

func figures(runs []Run, value func(Run) *Figure) []Figure {
	var known []Figure
	for _, run := range runs {
		if f := value(run); f != nil {
			known = append(known, *f)
		}
	}
	return known
}

// exactly returns the values of a metric in the used runs in ascending order. It leaves out lower bounds.
func (s Summary) exactly(m Metric) []Figure {
	exact := slices.DeleteFunc(figures(s.Used, m.Of), func(f Figure) bool { return f.AtLeast })
	slices.SortStableFunc(exact, byValue)
	return exact
}

// Range returns the smallest and the largest value of a metric in the used runs; false if there are fewer than two, or
// if a value is a lower bound.
func (s Summary) Range(m Metric) (low, high float64, ok bool) {
	values := s.exactly(m)
	if len(values) < 2 || len(values) < len(figures(s.Used, m.Of)) {
		return 0, 0, false
	}
	return values[0].Value, values[len(values)-1].Value, true
}

// spread formats the smallest and the largest exact value of a metric, as in "806–957"; "–" if there are fewer than
// two.
func (s Summary) spread(m Metric) string {
	known := s.exactly(m)
	if len(known) < 2 {
		return NotKnown
	}
	low, high := known[0].Text(m.Unit), known[len(known)-1].Text(m.Unit)
	if m.Unit == PerSecond { // the title has the unit
		low, high = strings.TrimSuffix(low, "/s"), strings.TrimSuffix(high, "/s")
	}
	if number, unit, found := strings.Cut(low, " "); found && strings.HasSuffix(high, " "+unit) {
		low = number // write the unit once
	}
	return fmt.Sprint(low, "–", high, s.Mark())
}

// near is the largest ratio of the range of a strategy's runs to their median at which a third digit is meaningful.
const near = 0.1

// Brief writes a metric of the strategy in its unit with no more digits than are known: three if the range of several
// runs is at most a tenth of their median, otherwise two. A single run has two digits, because the spread is not known.
// Counts are written in full.
func (s Summary) Brief(m Metric) string {
	f := s.Figure(m)
	if low, high, several := s.Range(m); several && f != nil && high-low <= near*f.Value {
		return s.text(m, usualDigits)
	}
	return s.text(m, 2)
}

// text writes a metric of the strategy in its unit with at most this many digits.
func (s Summary) text(m Metric, digits int) string {
	f := s.over(m, m.shown)
	switch {
	case f == nil:
		return NotKnown
	case m.is&whole != 0:
		return f.bounded(Whole(f.Value))
	case m.is&rough != 0:
		digits = 2
	}
	return f.in(m.Unit, digits)
}

// Verdict states in a few words whether the strategy's claims held in every run, for example "held (2 of 3 trusted)".
// An invalid run counts only if it broke a claim.
func (s Summary) Verdict() string {
	var broken []string
	trusted := 0
	for _, run := range s.Runs {
		for _, claim := range run.Safety.Broken {
			name := cmp.Or(claim.Code.Guarantee(), claim.Text) // the notes have the details
			if !slices.Contains(broken, name) {
				broken = append(broken, name)
			}
		}
		if run.Valid() {
			trusted++
		}
	}
	verdict := "held"
	if slices.ContainsFunc(s.Runs, Run.unaudited) && slices.Contains(s.Claims, "exclusion") {
		verdict = "held by each"
	}
	switch {
	case len(broken) > 0:
		verdict = "BROKEN: " + strings.Join(broken, ", ")
	case trusted == 0:
		verdict = "INVALID" // its runs cannot be trusted
	case len(s.Claims) == 0:
		verdict = "no claim"
	case trusted < len(s.Runs):
		verdict = fmt.Sprintf("%s (%d of %d trusted)", verdict, trusted, len(s.Runs))
	}
	if s.Caveat != "" {
		verdict += " (unsafe)"
	}
	return verdict
}

// TooFew returns the kinds of durations of which a run had too few for a 99th percentile, each with its number: "12
// handoffs". With fewer than 100, the p99 would be the maximum.
func (s Summary) TooFew() []Phrase {
	var few []Phrase
	for _, of := range [][2]string{{"handoffs", "Speed.Handoff"}, {"waits", "Waiting.PerAcquisition"}} {
		for _, run := range s.Used {
			if d := distribution(run, of[1]); d.samples() > 0 && !d.enough(99) {
				few = append(few, Phrasef("%s "+of[0], d.samples()))
				break
			}
		}
	}
	return few
}

// MachineBound reports whether a label of the run means that the machine, not the lock, limited the speed.
func (r Run) MachineBound() bool {
	return slices.ContainsFunc(r.Labels, func(label Remark) bool { return label.Code.SetsThePace() })
}

// Overloaded reports whether the arrivals of an open loop came at a higher rate than the lock served them.
func (r Run) Overloaded() bool { return r.Labels.Has(Overloaded) }
