package results_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

// docs/FORMATS.md must have a line for each metric. Percentiles of the same figure share a line.
func TestEveryMetricIsDocumented(t *testing.T) {
	const file, begin, end = "../docs/FORMATS.md", "<!-- metrics -->\n", "<!-- end of metrics -->\n"
	var want strings.Builder
	names, before := []string{}, results.Metric{}
	line := func() {
		unit := ""
		if before.Unit != results.Number {
			unit = " (" + string(before.Unit) + ")"
		}
		fmt.Fprintf(&want, "- %s%s: %s\n", strings.Join(names, ", "), unit, before.Help)
	}
	for _, m := range results.Metrics() {
		if m.Help != "the same" && m.Help != before.Help { // several percentiles have one line
			if len(names) > 0 {
				line()
			}
			names, before = nil, m
		}
		names = append(names, "`"+m.Name+"`")
	}
	line()
	golden.Section(t, file, begin, end, "\n"+want.String()+"\n")
}

// Each metric must have a unique name and a help text, and Of must not panic for a run without figures. A compared
// metric must have a label and a resolution.
func TestRowsAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, m := range results.Metrics() {
		if m.Name == "" || m.Help == "" || names[m.Name] {
			t.Errorf("%q: %q, or twice", m.Name, m.Help)
		}
		names[m.Name] = true
		m.Of(results.Run{}) // of a run without any figure
	}
	for _, m := range results.ComparedMetrics() {
		if m.Compared.Label == "" || m.Compared.Resolution <= 0 {
			t.Errorf("%s cannot be compared: %+v", m.Name, m.Compared)
		}
	}
}
