package results

import (
	"slices"
	"strings"

	"github.com/lockbench/lockbench/workloads"
)

// Group is a table of figures with one row per strategy.
type Group string

// The tables, in the order of a reader's questions: how fast, who waits, is it fair, what
// does it cost Redis, does it exclude.
const (
	SpeedGroup    Group = "SPEED"
	RatioGroup    Group = "RATIO to the first" // each strategy beside the first, round by round
	HerdGroup     Group = "HERD one release"
	WaitingGroup  Group = "WAITING time"
	FairnessGroup Group = "FAIRNESS"
	CostGroup     Group = "COST per acquisition"
	LoadGroup     Group = "LOAD on the servers"
	SpreadGroup   Group = "SPREAD min–max" // the smallest and the largest figure of the rounds
	SafetyGroup   Group = "SAFETY"
	PageGroup     Group = "PAGE" // the first table of the page for a browser

	ShortGroup      Group = "SHORT"       // the one table that is printed first
	ShortRatioGroup Group = "SHORT RATIO" // the part of RatioGroup that is printed under SHORT
)

// Column says in which table, and under which heading, a metric is shown.
type Column struct {
	Group   Group
	Place   int    // the order in the table; columns of the same place keep the order of the metrics
	Heading string // up to two lines
	// Shown says whether a report has a figure for the column; nil means always.
	Shown func(*Report) bool
	// Cell writes the cell; nil means the figure in its unit.
	Cell func(Summary) string
	// Words says that the cells are text, not numbers.
	Words bool
}

// Shown is a column of a group with its metric; a composite column has none.
type Shown struct {
	Column
	Metric
}

// Columns returns the columns of a group for which a report has figures.
func Columns(g Group, r *Report) []Shown {
	shown := func(c Column) bool { return c.Group == g && (c.Shown == nil || c.Shown(r)) }
	all := metricColumns(shown)
	for _, c := range composites() {
		if shown(c) {
			all = append(all, Shown{Column: c})
		}
	}
	slices.SortStableFunc(all, func(a, b Shown) int { return a.Place - b.Place })
	return all
}

// Flat returns the heading in one line.
func (c Column) Flat() string { return strings.NewReplacer("-\n", "", "\n", " ").Replace(c.Heading) }

// SafetyColumns returns all columns of the safety table, whether a report has figures or not.
func SafetyColumns() []Shown {
	return metricColumns(func(c Column) bool { return c.Group == SafetyGroup })
}

func metricColumns(wanted func(Column) bool) []Shown {
	var all []Shown
	for _, m := range Metrics() {
		for _, c := range m.Columns {
			if wanted(c) {
				all = append(all, Shown{c, m})
			}
		}
	}
	return all
}

// Text returns a strategy's cell: the median or the sum of its runs, in the metric's unit.
func (c Shown) Text(s Summary) string {
	if c.Cell != nil {
		return c.Cell(s)
	}
	f := s.over(c.Metric, c.Metric.shown)
	if f == nil {
		return NotKnown
	}
	text := f.Text(c.Unit)
	switch {
	case c.Whole:
		text = f.bounded(Whole(f.Value))
	case c.Rough:
		text = f.bounded(c.Unit.inDigits(f.Value, 2))
	case c.Unit == PerSecond: // the heading has the unit
		text = strings.TrimSuffix(text, "/s")
	}
	if c.total { // a single violation counts, even in an invalid run
		return text
	}
	return text + s.Mark()
}

// in returns the only column of a metric.
func in(g Group, place int, heading string) []Column {
	return []Column{{Group: g, Place: place, Heading: heading}}
}

// when limits columns to the reports for which shown is true.
func when(shown func(*Report) bool, columns ...Column) []Column {
	for i := range columns {
		columns[i].Shown = shown
	}
	return columns
}

func coalesced(r *Report) bool { return r.Workload.Coalesce }

func counted(r *Report) bool { return r.Workload.Work == workloads.WorkCounter }

func openLoop(r *Report) bool { return r.Workload.Rate > 0 }

func slots(r *Report) bool { return r.Workload.Slots() }

// anyRun says whether has is true for a run of the report.
func anyRun(has func(Run) bool) func(*Report) bool {
	return func(r *Report) bool { return slices.ContainsFunc(r.Runs, has) }
}

// passed says whether a lock passed from client to client of several application instances.
func passed(r *Report) bool {
	return slices.ContainsFunc(r.Runs, func(run Run) bool {
		return run.Fairness.PassesWithin != nil && r.WorkloadOf(run).Instances > 1
	})
}

func not(has func(*Report) bool) func(*Report) bool {
	return func(r *Report) bool { return !has(r) }
}
