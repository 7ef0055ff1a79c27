package results

import (
	"slices"
	"strings"

	"github.com/lockbench/lockbench/workloads"
)

// summary is one strategy at one point over all its runs. Its figures are medians, because
// one disturbed round of a noisy machine would move a mean.
type summary struct {
	Strategy
	point    string // of a sweep
	workload workloads.Spec
	runs     []Run // every one, in the order in which they ran
	used     []Run // those the figures come from
	// suspect says that no run could be trusted, so that all of them are used.
	suspect bool
}

// usable says whether a run's figures may go into a median.
func usable(r Run) bool { return r.Valid() && r.Failure == "" }

// choose the runs that figures come from.
func (s *summary) choose() {
	s.used, s.suspect = nil, false
	for _, run := range s.runs {
		if usable(run) {
			s.used = append(s.used, run)
		}
	}
	if len(s.used) == 0 {
		s.used, s.suspect = s.runs, true
	}
}

// title is how tables name it.
func (s summary) title() string { return strings.TrimSpace(s.Name + " " + s.point) }

// summarise groups a report's runs by strategy and point, in the order in which
// they were asked for. What never ran is left out.
func summarise(r *Report) []summary {
	var all []summary
	type place struct{ strategy, point string }
	index := map[place]int{}
	add := func(s Strategy, point string) *summary {
		at, known := index[place{s.Name, point}]
		if !known {
			at = len(all)
			index[place{s.Name, point}] = at
			all = append(all, summary{Strategy: s, point: point, workload: r.WorkloadOf(Run{Point: point})})
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
		s.runs = append(s.runs, run)
	}
	for i := range all {
		all[i].choose()
	}
	return slices.DeleteFunc(all, func(s summary) bool { return len(s.runs) == 0 })
}

// tainted says that at least one run cannot be trusted.
func (s summary) tainted() bool { return s.suspect || len(s.used) < len(s.runs) }

// values are a figure's known values, ascending.
func (s summary) values(figure func(Run) *float64) []float64 {
	var known []float64
	for _, run := range s.used {
		if v := figure(run); v != nil {
			known = append(known, *v)
		}
	}
	slices.Sort(known)
	return known
}

// median is the median of the runs in which the figure is known; nil when it is
// known in none.
func (s summary) median(figure func(Run) *float64) *float64 {
	known := s.values(figure)
	if len(known) == 0 {
		return nil
	}
	return new(Median(known))
}

// bound is the median of a duration that in some runs may be a lower bound
// only, see MedianFigure.
func (s summary) bound(duration func(Run) *Bound) *Bound {
	m := s.figure(timed(duration))
	if m == nil {
		return nil
	}
	return &Bound{NS: int64(m.Value), AtLeast: m.AtLeast}
}

// figure is the median of what in some runs may be a lower bound only.
func (s summary) figure(value func(Run) *Figure) *Figure {
	var known []Figure
	for _, run := range s.used {
		if f := value(run); f != nil {
			known = append(known, *f)
		}
	}
	return MedianFigure(known)
}

// total adds up a count over every run, the untrusted ones included: a broken
// lock is not excused by a disturbed measurement.
func (s summary) total(count func(Run) int64) int64 {
	var sum int64
	for _, run := range s.runs {
		sum += count(run)
	}
	return sum
}

// known adds up a count over the runs that know it; nil when none does.
func (s summary) known(count func(Run) *int64) *float64 {
	var sum *float64
	for _, run := range s.runs {
		if n := count(run); n != nil {
			if sum == nil {
				sum = new(float64)
			}
			*sum += float64(*n)
		}
	}
	return sum
}

// exactly makes a figure of one that is always known.
func exactly[N int | int64 | float64](n N) *float64 {
	v := float64(n)
	return &v
}

// converted is a figure that may be unknown.
func converted(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return exactly(*n)
}
