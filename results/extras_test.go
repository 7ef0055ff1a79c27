package results

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExtras are there for what a workload has, and for nothing else.
func TestExtras(t *testing.T) {
	t.Parallel()
	if got := sample().Extras(); got != nil {
		t.Errorf("a plain workload has %v", got)
	}
	r := faulty()
	r.Runs[0].Herd = &Herd{Bursts: 3, Attempts: new(7.0)}
	var titles []string
	for _, table := range r.Extras() {
		titles = append(titles, table.Title)
		if len(table.Rows) != len(r.Strategies) || len(table.Rows[0]) != len(table.Head)+1 {
			t.Errorf("%s has %d rows of %d cells under %d titles", table.Title, len(table.Rows), len(table.Rows[0]), len(table.Head))
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
