package results_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

// docs/FORMATS.md has a line for each metric, made from the rows.
func TestEveryMetricIsDocumented(t *testing.T) {
	const file, begin, end = "../docs/FORMATS.md", "<!-- metrics -->\n", "<!-- end of metrics -->\n"
	var want strings.Builder
	want.WriteString("| metric | unit | better | |\n| --- | --- | --- | --- |\n")
	for _, m := range results.Metrics() {
		better := map[results.Better]string{results.Lower: "lower", results.Higher: "higher"}[m.Better]
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", m.Name, m.Unit, better, m.Help)
	}
	golden.Section(t, file, begin, end, want.String())
}

// Each row has a name of its own, a help text, and can be found.
func TestRowsAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, m := range results.Metrics() {
		if m.Name == "" || m.Help == "" || names[m.Name] {
			t.Errorf("%q: %q, or twice", m.Name, m.Help)
		}
		names[m.Name] = true
		m.Of(results.Run{}) // of a run that knows nothing
	}
	for _, m := range results.ComparedMetrics() {
		if m.Compared.Label == "" || m.Compared.Resolution <= 0 {
			t.Errorf("%s cannot be compared: %+v", m.Name, m.Compared)
		}
	}
}
