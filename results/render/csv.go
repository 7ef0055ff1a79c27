package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/results"
)

// WriteCSV writes one row per run. The header contains the units of the metrics. An unknown figure is empty. If a
// figure is a lower bound, the next column is true. New columns are added at the end. Lines end as RFC 4180 requires.
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
	header := []string{
		"strategy", "round", "order", "seed", "started", "window_ns", "clients", "instances", "keys", "hold", "rate",
		"redis", "valid", "why_invalid", "labels",
	}
	columns := csvColumns()
	for _, c := range columns {
		header = append(header, c.title)
	}
	rows := [][]string{header}
	for _, run := range r.Runs {
		w := r.WorkloadOf(run)
		row := []string{run.Strategy}
		for _, value := range []any{
			run.Round, run.Order, run.Seed, run.Started.UTC().Format(time.RFC3339Nano), run.WindowNS, w.Clients,
			w.Instances, w.Keys, w.Hold, w.Rate, r.ServerOf(run).Release(), run.Usable(), why(run),
			run.Labels,
		} {
			row = append(row, fmt.Sprint(value))
		}
		for _, c := range columns {
			row = append(row, c.cell(run))
		}
		rows = append(rows, row)
	}
	return rows
}

// csvColumn is one column of the CSV file, with its title and the function that formats its cells.
type csvColumn struct {
	title string
	cell  func(results.Run) string
}

// mayBeBound matches the names of durations that may be lower bounds.
var mayBeBound = regexp.MustCompile("wait|^service_|^fault_")

// csvColumns returns a column for each metric. If the metric may be a lower bound, the next column reports whether it
// is one.
func csvColumns() []csvColumn {
	var columns []csvColumn
	add := func(m results.Metric, title string, write func(results.Figure) string) {
		columns = append(columns, csvColumn{title, func(run results.Run) string {
			if f := m.Of(run); f != nil {
				return write(*f)
			}
			return ""
		}})
	}
	for _, m := range results.Metrics() {
		title := m.Name
		if m.Unit != results.Number && m.Unit != results.PerSecond { // the name acq_per_s has the unit
			title += "_" + string(m.Unit)
		}
		add(m, title, func(f results.Figure) string { return strconv.FormatFloat(f.Value, 'f', -1, 64) })
		if m.Unit == results.Nanoseconds && mayBeBound.MatchString(m.Name) {
			add(m, m.Name+"_at_least", func(f results.Figure) string { return strconv.FormatBool(f.AtLeast) })
		}
	}
	return columns
}
