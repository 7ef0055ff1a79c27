package results

import (
	"slices"
	"strings"
)

// Table is a table of the report as plain text.
type Table struct {
	Title string
	Head  []string // of the columns after the strategy's name
	Rows  [][]string
}

// Extras are the tables that only some workloads have: of a gathered herd's
// bursts, and of each fault.
func (r *Report) Extras() []Table {
	all := summarise(r)
	if len(all) == 0 {
		return nil
	}
	groups := append([]group{{"HERD one release", herdColumns(r)}}, faultGroups(r)...)
	groups = slices.DeleteFunc(groups, func(g group) bool { return g.columns == nil })
	var tables []Table
	for _, g := range groups {
		t := Table{Title: g.title}
		for _, c := range g.columns {
			t.Head = append(t.Head, strings.NewReplacer("-\n", "", "\n", " ").Replace(c.title))
		}
		for _, s := range all {
			row := []string{s.title()}
			for _, c := range g.columns {
				row = append(row, c.cell(s))
			}
			t.Rows = append(t.Rows, row)
		}
		tables = append(tables, t)
	}
	return tables
}
