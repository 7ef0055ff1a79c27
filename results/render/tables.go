package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// tables returns the tables for which the report has figures.
func tables(r *results.Report, all []results.Summary) []results.Table {
	var tables []results.Table
	for _, g := range []results.Group{
		results.SpeedGroup, results.RatioGroup, results.HerdGroup, results.WaitingGroup, results.FairnessGroup,
		results.CostGroup, results.LoadGroup, results.SpreadGroup, results.SafetyGroup,
	} {
		columns := results.Columns(g, r)
		switch g {
		case results.RatioGroup:
			columns = ratios(columns, r, all)
		case results.SpreadGroup:
			columns = spreads(columns, r, all)
		}
		tables = append(tables, results.Table{Title: string(g), Columns: columns})
	}
	return slices.DeleteFunc(append(tables, r.FaultTables()...),
		func(t results.Table) bool { return len(t.Columns) == 0 })
}

// ratios compares each strategy, round by round, with the first one at the same point; nil if
// there is nothing to compare.
func ratios(columns []results.Shown, r *results.Report, all []results.Summary) []results.Shown {
	bases := map[string]results.Summary{} // by point
	for _, s := range all {
		if _, known := bases[s.Point]; !known {
			bases[s.Point] = s
		}
	}
	if r.Rounds < 2 || len(bases) == len(all) {
		return nil
	}
	for i, c := range columns {
		columns[i].Cell = func(s results.Summary) string {
			base := bases[s.Point]
			if base.Title() == s.Title() {
				return "1"
			}
			ratio := s.Against(base, c.Metric)
			if ratio == nil {
				return results.NotKnown
			}
			return ratio.Text(s.Digits(base, c.Metric))
		}
	}
	return columns
}

// spreads shows the smallest and the largest figure of several runs where the other tables show
// only the median; nil for one run.
func spreads(columns []results.Shown, r *results.Report, all []results.Summary) []results.Shown {
	if r.Rounds < 2 {
		return nil
	}
	for i, c := range columns {
		columns[i].Cell = func(s results.Summary) string { return spread(s, c.Metric) }
	}
	return slices.DeleteFunc(columns, func(c results.Shown) bool {
		return !slices.ContainsFunc(all, func(s results.Summary) bool { return c.Cell(s) != results.NotKnown })
	})
}

// spread writes the smallest and the largest of a metric's exactly known values.
func spread(s results.Summary, m results.Metric) string {
	known := s.Exactly(m)
	if len(known) < 2 {
		return results.NotKnown
	}
	low, high := known[0].Text(m.Unit), known[len(known)-1].Text(m.Unit)
	if m.Unit == results.PerSecond { // the title has the unit
		low, high = strings.TrimSuffix(low, "/s"), strings.TrimSuffix(high, "/s")
	}
	if number, unit, found := strings.Cut(low, " "); found && strings.HasSuffix(high, " "+unit) {
		low = number // write the unit once
	}
	return fmt.Sprint(low, "–", high, s.Mark())
}
