package results

import (
	"slices"
	"strings"

	"github.com/lockbench/lockbench/workloads"
)

// Group is a table of figures, with a row for each strategy.
type Group string

// The tables, in the order in which questions are asked: how fast, who waits, is it fair,
// what does Redis pay, does it exclude.
const (
	SpeedGroup    Group = "SPEED"
	RatioGroup    Group = "RATIO to the first" // each strategy beside the first, round by round
	HerdGroup     Group = "HERD one release"
	WaitingGroup  Group = "WAITING time"
	FairnessGroup Group = "FAIRNESS"
	CostGroup     Group = "COST per acquisition"
	LoadGroup     Group = "LOAD on the servers"
	SpreadGroup   Group = "SPREAD min–max" // between what the rounds lie
	SafetyGroup   Group = "SAFETY"
	PageGroup     Group = "PAGE" // the first table of the page for a browser

	ShortGroup      Group = "SHORT"       // the one table that answers first
	ShortRatioGroup Group = "SHORT RATIO" // of RatioGroup, what stands under it
)

// Column is where and under which words tables show a metric.
type Column struct {
	Group   Group
	Place   int    // in the table; of equal ones the metric that is listed first comes first
	Heading string // up to two lines
	// Shown says whether a report has something to show there; nil: all have.
	Shown func(*Report) bool
	// Cell is what stands there; nil: the figure in its unit.
	Cell func(Summary) string
	// Words says that it is text and no number.
	Words bool
}

// Shown is a column of a group with its metric, of which some have none.
type Shown struct {
	Column
	Metric
}

// Columns are those of a group that a report has something to show in.
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

// Flat is the heading in one line.
func (c Column) Flat() string { return strings.NewReplacer("-\n", "", "\n", " ").Replace(c.Heading) }

// SafetyColumns are those of all that is counted for safety, whatever a report has of it.
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

// Text is what the column says of a strategy: the median of its runs, or their sum, in the
// metric's unit.
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
	case c.Unit == PerSecond: // as the heading says
		text = strings.TrimSuffix(text, "/s")
	}
	if c.total { // what was seen once is true, also of a run that cannot be trusted
		return text
	}
	return text + s.Mark()
}

// in is the one column of a metric.
func in(g Group, place int, heading string) []Column {
	return []Column{{Group: g, Place: place, Heading: heading}}
}

// when has columns be shown for some reports only.
func when(shown func(*Report) bool, columns ...Column) []Column {
	for i := range columns {
		columns[i].Shown = shown
	}
	return columns
}

func coalesced(r *Report) bool { return r.Workload.Coalesce }

func counted(r *Report) bool { return r.Workload.Work == workloads.WorkCounter }

func openLoop(r *Report) bool { return r.Workload.Rate > 0 }

// anyRun says whether a run of the report has something.
func anyRun(has func(Run) bool) func(*Report) bool {
	return func(r *Report) bool { return slices.ContainsFunc(r.Runs, has) }
}

func not(has func(*Report) bool) func(*Report) bool {
	return func(r *Report) bool { return !has(r) }
}
