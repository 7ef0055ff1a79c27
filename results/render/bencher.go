package render

import (
	"io"

	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
)

// bencherValue is a value in Bencher's metric format.
type bencherValue struct {
	Value float64  `json:"value"`
	Lower *float64 `json:"lower_value,omitempty"`
	Upper *float64 `json:"upper_value,omitempty"`
}

// WriteBencher writes Bencher's metric format (bencher.dev, "BMF"): a benchmark for each
// strategy and workload, and a measure for each metric in its own unit.
func WriteBencher(w io.Writer, r *results.Report) error {
	benchmarks := map[string]map[string]bencherValue{}
	for _, s := range r.Summaries() {
		measures := map[string]bencherValue{}
		for _, p := range points(s) {
			value := bencherValue{Value: rounded6(p.value)}
			if p.runs > 1 {
				value.Lower, value.Upper = new(rounded6(p.low)), new(rounded6(p.high))
			}
			measures[p.Name] = value
		}
		benchmarks[series(s)] = measures
	}
	return jsonio.Write(w, "benchmarks", benchmarks)
}
