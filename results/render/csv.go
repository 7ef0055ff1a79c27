package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results"
)

// csvColumn is a column of the CSV.
type csvColumn struct {
	title string
	cell  func(*results.Report, results.Run) string
}

// WriteCSV writes one row per run, with the metrics' units in the header. An unknown figure is
// empty; a lower bound has true in the next column. New columns are added at the end. Lines
// end as in RFC 4180.
func WriteCSV(w io.Writer, r *results.Report) error {
	rows := csv.NewWriter(w)
	rows.UseCRLF = true
	if err := rows.WriteAll(csvRows(r)); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// csvRows returns the header and a row for each run.
func csvRows(r *results.Report) [][]string {
	columns := csvColumns()
	table := make([][]string, 1+len(r.Runs))
	for _, c := range columns {
		table[0] = append(table[0], c.title)
		for i, run := range r.Runs {
			table[i+1] = append(table[i+1], c.cell(r, run))
		}
	}
	return table
}

func csvColumns() []csvColumn {
	columns := []csvColumn{
		{"strategy", func(_ *results.Report, run results.Run) string { return run.Strategy }},
		{"round", func(_ *results.Report, run results.Run) string { return strconv.Itoa(run.Round) }},
		{"order", func(_ *results.Report, run results.Run) string { return strconv.Itoa(run.Order) }},
		{"seed", func(_ *results.Report, run results.Run) string { return strconv.FormatInt(run.Seed, 10) }},
		{"started", func(_ *results.Report,
			run results.Run,
		) string {
			return run.Started.UTC().Format(time.RFC3339Nano)
		}},
		{"window_ns", func(_ *results.Report, run results.Run) string { return strconv.FormatInt(run.WindowNS, 10) }},
		{"clients", func(r *results.Report, run results.Run) string { return strconv.Itoa(r.WorkloadOf(run).Clients) }},
		{"instances", func(r *results.Report,
			run results.Run,
		) string {
			return strconv.Itoa(r.WorkloadOf(run).Instances)
		}},
		{"keys", func(r *results.Report, run results.Run) string { return strconv.Itoa(r.WorkloadOf(run).Keys) }},
		{"hold", func(r *results.Report, run results.Run) string { return r.WorkloadOf(run).Hold.String() }},
		{"rate", func(r *results.Report, run results.Run) string { return r.WorkloadOf(run).Rate.String() }},
		{"redis", func(r *results.Report, run results.Run) string { return r.ServerOf(run).Release() }},
		{"valid", func(_ *results.Report, run results.Run) string { return strconv.FormatBool(run.Usable()) }},
		{"why_invalid", func(_ *results.Report, run results.Run) string { return why(run) }},
		{"labels", func(_ *results.Report, run results.Run) string { return strings.Join(run.Labels, "; ") }},
	}
	for _, m := range results.Metrics() {
		title := m.Name
		if m.Unit != results.Number && m.Unit != results.PerSecond { // the name acq_per_s has the unit
			title += "_" + string(m.Unit)
		}
		columns = append(columns, csvColumn{title, func(_ *results.Report, run results.Run) string {
			f := m.Of(run)
			if f == nil {
				return ""
			}
			return strconv.FormatFloat(f.Value, 'f', -1, 64)
		}})
		if m.Unit == results.Nanoseconds && strings.Contains(m.Name, "wait") {
			columns = append(columns, atLeast(m))
		}
	}
	for _, name := range []string{"fault_recovery_max", "fault_stall_max"} { // later than the others, so at the end
		m, _ := results.FindMetric(name)
		columns = append(columns, atLeast(m))
	}
	return columns
}

// atLeast is the column that says whether a metric is a lower bound.
func atLeast(m results.Metric) csvColumn {
	return csvColumn{m.Name + "_at_least", func(_ *results.Report, run results.Run) string {
		f := m.Of(run)
		if f == nil {
			return ""
		}
		return strconv.FormatBool(f.AtLeast)
	}}
}
