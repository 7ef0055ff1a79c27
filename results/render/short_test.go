package render

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func short(t *testing.T, r *results.Report, color bool) string {
	t.Helper()
	return string(written(t, func(w io.Writer, r *results.Report) error { return WriteTable(w, r, 80, color) }, r))
}

// shortCases returns the reports in ../testdata, except "recorded", and one report with --burst. The keys of the map
// are part of the names of the golden files.
func shortCases(t *testing.T) map[string]*results.Report {
	cases := samples(t)
	bursts := sample(t, "normal")
	bursts.Workload.Burst = 1e8
	for i := range bursts.Runs {
		bursts.Runs[i].Herd = &results.Herd{
			Bursts: 40, Attempts: new(499.0), WakeUps: new(12.0), Commands: new(1800.0),
			DrainCommands: new(17.0), PeakCPU: new(91.0),
		}
	}
	cases["bursts"] = bursts
	return cases
}

// A strategy's name must not be wrapped if it fits on a line of 80 columns. If it is short enough, it must be on the
// same line as the strategy's figures.
func TestShortTableKeepsNamesWhole(t *testing.T) {
	for name, beside := range map[string]bool{
		"spin": true, "twelve-chars": true, "spin:backoff=decorrelated,base=1.5ms,cap=100.25ms,multiplier=1.75": false,
		strings.Repeat("x", 80): false,
	} {
		r := sample(t, "normal")
		r.Strategies[0].Name, r.Runs[2].Strategy = name, name
		lines := strings.Split(short(t, r, false), "\n")
		at := slices.IndexFunc(lines, func(line string) bool {
			return line == name ||
				strings.HasPrefix(line, name+" ")
		})
		if at < 0 {
			t.Errorf("%q is in pieces:\n%s", name, strings.Join(lines, "\n"))
			continue
		}
		figures := lines[at]
		if !beside {
			figures = lines[at+1]
		}
		if !strings.Contains(figures, " 410 ") || !strings.HasSuffix(figures, " held") {
			t.Errorf("%q has the figures %q", name, figures)
		}
	}
	long := strings.Repeat("y", 81)
	r := sample(t, "normal")
	r.Strategies[0].Name, r.Runs[2].Strategy = long, long
	table, _, _ := strings.Cut(short(t, r, false), "read ")
	if flat := strings.NewReplacer("\n", "", " ", "").Replace(table); !strings.Contains(flat, long) {
		t.Errorf("a name of 81 columns is not there:\n%s", table)
	}
}
