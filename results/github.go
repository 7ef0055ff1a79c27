package results

import (
	"fmt"
	"io"

	"github.com/lockbench/lockbench/internal/indented"
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

// WriteGitHub writes the metrics that improve in one direction, Lower for
// customSmallerIsBetter and Higher for customBiggerIsBetter: the tool takes a
// file for each.
func WriteGitHub(w io.Writer, r *Report, better Better) error {
	values := []githubPoint{}
	for _, s := range summarise(r) {
		for _, p := range s.points() {
			if p.Better != better {
				continue
			}
			unit, scale := githubUnit(p.Unit)
			g := githubPoint{
				Name:  s.series() + "/" + p.Name,
				Unit:  unit,
				Value: rounded6(p.value * scale),
				Extra: fmt.Sprintf("runs=%d seed=%d", p.runs, s.workload.Seed),
			}
			if p.high > p.low {
				g.Range = "± " + significant((p.high-p.low)/2*scale)
			}
			values = append(values, g)
		}
	}
	return indented.Write(w, "benchmarks", values)
}

// githubUnit is what charts show, and by what a value is multiplied for it.
func githubUnit(u Unit) (string, float64) {
	switch u {
	case Nanoseconds:
		return "ms", 1e-6
	case Percent:
		return "%", 1
	case Number:
		return "n", 1
	}
	return string(u), 1
}
