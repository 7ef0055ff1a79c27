package render

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
)

// otavaHead holds the columns before the metrics.
var otavaHead = []string{"time", "commit", "branch"}

// otavaUnknown stands for an unknown figure: Otava reads cells with Python's float(), and
// refuses an empty one.
const otavaUnknown = "nan"

// CheckOtava returns an error if WriteOtava cannot continue this CSV.
func CheckOtava(existing []byte) error {
	_, err := readOtava(existing)
	return err
}

func readOtava(existing []byte) ([][]string, error) {
	if len(bytes.TrimSpace(existing)) == 0 {
		return [][]string{otavaHead}, nil
	}
	rows, err := csv.NewReader(bytes.NewReader(existing)).ReadAll() // it requires rows of equal length
	if err != nil {
		return nil, err
	}
	if len(rows[0]) < len(otavaHead) || !slices.Equal(rows[0][:len(otavaHead)], otavaHead) {
		return nil, fmt.Errorf("it is not a CSV for Otava: it begins with %q, not %q", strings.Join(rows[0], ","), strings.Join(otavaHead, ","))
	}
	return rows, nil
}

// WriteOtava writes the CSV in which Apache Otava looks for change points: the existing rows,
// and a row for this report with a column for each tracked metric of each series. In a new
// column the earlier rows get nan.
func WriteOtava(w io.Writer, r *results.Report, existing []byte) error {
	rows, err := readOtava(existing)
	if err != nil {
		return err
	}
	row := map[string]string{"time": r.Started.UTC().Format(time.RFC3339), "commit": r.Tool.Commit, "branch": r.Tool.Branch}
	for _, column := range otavaColumns(r) {
		if row[column.name] = otavaUnknown; column.value != nil {
			row[column.name] = strconv.FormatFloat(rounded6(*column.value), 'f', -1, 64)
		}
		if !slices.Contains(rows[0], column.name) {
			rows[0] = append(slices.Clip(rows[0]), column.name)
		}
	}
	for i := range rows[1:] {
		for len(rows[i+1]) < len(rows[0]) {
			rows[i+1] = append(rows[i+1], otavaUnknown)
		}
	}
	var last []string
	for _, column := range rows[0] {
		cell, known := row[column]
		if !known {
			cell = otavaUnknown
		}
		last = append(last, cell)
	}
	if err := csv.NewWriter(w).WriteAll(append(rows, last)); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

type otavaColumn struct {
	series string
	name   string
	metric results.Metric
	value  *float64
}

func otavaColumns(r *results.Report) []otavaColumn {
	var columns []otavaColumn
	for _, s := range r.Summaries() {
		for _, m := range results.TrackedMetrics() {
			column := otavaColumn{series: series(s), name: series(s) + "/" + m.Name, metric: m}
			if f := s.Figure(m); f != nil && !f.AtLeast {
				column.value = &f.Value
			}
			columns = append(columns, column)
		}
	}
	return columns
}

// otavaTest is a test in Otava's configuration.
type otavaTest struct {
	Type       string                 `yaml:"type"`
	File       string                 `yaml:"file"`
	TimeColumn string                 `yaml:"time_column"`
	Attributes []string               `yaml:"attributes"`
	Metrics    map[string]otavaMetric `yaml:"metrics"`
	CSVOptions map[string]string      `yaml:"csv_options"`
}

type otavaMetric struct {
	Column    string `yaml:"column"`
	Direction int    `yaml:"direction"` // 1: more is better, -1: less is
	Scale     int    `yaml:"scale"`
}

// WriteOtavaConfig writes Otava's configuration for the CSV in file: a test for each of the
// report's series.
func WriteOtavaConfig(w io.Writer, r *results.Report, file string) error {
	tests := map[string]*otavaTest{}
	for _, column := range otavaColumns(r) {
		test := tests[column.series]
		if test == nil {
			test = &otavaTest{
				Type: "csv", File: file, TimeColumn: "time", Attributes: []string{"commit", "branch"},
				Metrics: map[string]otavaMetric{}, CSVOptions: map[string]string{"delimiter": ",", "quote_char": `"`},
			}
			tests[column.series] = test
		}
		direction := -1
		if column.metric.Better == results.Higher {
			direction = 1
		}
		test.Metrics[column.metric.Name] = otavaMetric{column.name, direction, 1}
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(map[string]any{"tests": tests}), encoder.Close()); err != nil {
		return fmt.Errorf("encode YAML: %w", err)
	}
	return jsonio.WriteText(w, "YAML", b.Bytes())
}
