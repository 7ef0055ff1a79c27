package render

import (
	"fmt"
	"io"

	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
)

// githubPoint is one value for github-action-benchmark's custom tools
// (github.com/benchmark-action/github-action-benchmark).
type githubPoint struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Range string  `json:"range,omitempty"`
	Extra string  `json:"extra"`
}

// WriteGitHub writes the metrics that improve in one direction: Lower for
// customSmallerIsBetter, Higher for customBiggerIsBetter. The tool needs a file for each.
func WriteGitHub(w io.Writer, r *results.Report, better results.Better) error {
	values := []githubPoint{}
	for _, s := range r.Summaries() {
		for _, p := range points(s) {
			if p.Better != better {
				continue
			}
			unit, scale := githubUnit(p.Unit)
			g := githubPoint{
				Name:  series(s) + "/" + p.Name,
				Unit:  unit,
				Value: rounded6(p.value * scale),
				Extra: fmt.Sprintf("runs=%d seed=%d", p.runs, s.Workload.Seed),
			}
			if p.high > p.low {
				g.Range = "± " + results.Significant((p.high-p.low)/2*scale)
			}
			values = append(values, g)
		}
	}
	return jsonio.Write(w, "benchmarks", values)
}

// githubUnit returns a chart's unit and the factor for its values.
func githubUnit(u results.Unit) (string, float64) {
	switch u {
	case results.Nanoseconds:
		return "ms", 1e-6
	case results.Percent:
		return "%", 1
	case results.Number:
		return "n", 1
	}
	return string(u), 1
}
