package render

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/perf/benchproc"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

// TestBenchstatMakesOneTable groups the lines of two builds as benchstat does:
// its tables by what the header says, rows and columns by parts of the names.
func TestBenchstatMakesOneTable(t *testing.T) {
	t.Parallel()
	before, after := sample.Recorded(), sample.Recorded()
	after.Tool = results.Tool{Name: "lockbench", Version: "v0.2.0", Commit: "fedcba9876543210"}
	after.Started, after.Finished = before.Started.AddDate(0, 0, 1), before.Finished.AddDate(0, 0, 1)
	after.Environment.TimerOvershoot++
	after.Workload.Seed++
	for i := range after.Runs {
		after.Runs[i].Seed++
		after.Runs[i].Started = after.Runs[i].Started.Add(24 * time.Hour)
	}
	var parser benchproc.ProjectionParser
	projection := func(expression string) *benchproc.Projection {
		p, err := parser.Parse(expression, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	tables, rows, columns := projection(".config"), projection("/clients"), projection("/strategy")
	residue := parser.Residue()
	seen := map[*benchproc.Projection][]string{}
	cells := map[string]int{}
	for _, r := range []*results.Report{before, after} {
		for _, line := range readBench(t, written(t, WriteBenchfmt, r)) {
			for _, p := range []*benchproc.Projection{tables, rows, columns, residue} {
				if key := p.Project(line).String(); !slices.Contains(seen[p], key) {
					seen[p] = append(seen[p], key)
				}
			}
			cells[columns.Project(line).String()]++
		}
	}
	if len(seen[tables]) != 1 || len(seen[rows]) != 1 || len(seen[residue]) != 1 {
		t.Errorf("tables %q, rows %q, and what is in neither %q: benchstat would split or warn", seen[tables], seen[rows], seen[residue])
	}
	for _, strategy := range []string{"spin", "pubsub", "redsync"} {
		if n := cells["/strategy:"+strategy]; n != 2*before.Rounds {
			t.Errorf("%s has %d samples in its column, not those of both builds, %d: %v", strategy, n, 2*before.Rounds, cells)
		}
	}
}
