package results_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

// TestExtras are there for what a workload has, and for nothing else.
func TestExtras(t *testing.T) {
	t.Parallel()
	if got := sample.Report().Extras(); len(got) > 0 {
		t.Errorf("a plain workload has %v", got)
	}
	r := sample.Faulty()
	r.Runs[0].Herd = &results.Herd{Bursts: 3, Attempts: new(7.0)}
	var titles []string
	for _, table := range r.Extras() {
		titles = append(titles, table.Title)
		for _, s := range r.Summaries() {
			for _, c := range table.Columns {
				if c.Flat() == "" || c.Text(s) == "" {
					t.Errorf("%s has the column %q with %q for %s", table.Title, c.Flat(), c.Text(s), s.Name)
				}
			}
		}
	}
	want := []string{"HERD one release"}
	for _, fault := range r.Workload.Faults {
		want = append(want, "FAULT "+fault.Name)
	}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFiguresOfExperiments(t *testing.T) {
	t.Parallel()
	tries, refused := 99.0, int64(3)
	r := results.Run{Herd: &results.Herd{Attempts: &tries}, Safety: results.Safety{MaxHolders: 4, Refused: &refused}, Speed: results.Speed{Acquisitions: 7}}
	for name, want := range map[string]float64{"burst_attempts": 99, "max_holders": 4, "refused_updates": 3, "acquisitions": 7} {
		m, there := results.FindMetric(name)
		if f := m.Of(r); !there || f == nil || f.Value != want {
			t.Errorf("%s is %v, want %v", name, f, want)
		}
	}
	for _, name := range []string{"burst_attempts", "burst_wake_ups", "refused_updates"} {
		if m, _ := results.FindMetric(name); m.Of(results.Run{}) != nil {
			t.Errorf("%s is known of a run without it", name)
		}
	}
}
