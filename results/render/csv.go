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
	header := []string{
		"strategy", "round", "order", "seed", "started", "window_ns", "clients", "instances", "keys", "hold", "rate",
		"redis", "valid", "why_invalid", "labels",
	}
	columns := csvMetrics()
	for _, c := range columns {
		header = append(header, c.title())
	}
	rows := [][]string{header}
	for _, run := range r.Runs {
		w := r.WorkloadOf(run)
		row := []string{run.Strategy}
		for _, value := range []any{
			run.Round, run.Order, run.Seed, run.Started.UTC().Format(time.RFC3339Nano), run.WindowNS, w.Clients,
			w.Instances, w.Keys, w.Hold, w.Rate, r.ServerOf(run).Release(), run.Usable(), why(run),
			strings.Join(run.Labels, "; "),
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

// csvMetric is a column of a metric; or, of one that may be a lower bound, the column that says whether it is.
type csvMetric struct {
	results.Metric
	atLeast bool
}

func csvMetrics() []csvMetric {
	var columns []csvMetric
	for _, m := range results.Metrics() {
		columns = append(columns, csvMetric{m, false})
		if m.Unit == results.Nanoseconds && strings.Contains(m.Name, "wait") {
			columns = append(columns, csvMetric{m, true})
		}
	}
	for _, name := range []string{"fault_recovery_max", "fault_stall_max"} { // later than the others, so at the end
		m, _ := results.FindMetric(name)
		columns = append(columns, csvMetric{m, true})
	}
	return columns
}

func (c csvMetric) title() string {
	switch {
	case c.atLeast:
		return c.Name + "_at_least"
	case c.Unit == results.Number, c.Unit == results.PerSecond: // the name acq_per_s has the unit
		return c.Name
	}
	return c.Name + "_" + string(c.Unit)
}

func (c csvMetric) cell(run results.Run) string {
	f := c.Of(run)
	switch {
	case f == nil:
		return ""
	case c.atLeast:
		return strconv.FormatBool(f.AtLeast)
	}
	return strconv.FormatFloat(f.Value, 'f', -1, 64)
}
