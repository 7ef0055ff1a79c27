package runner

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// TestGeneratorsAgree: what generators of a session work out by themselves is the
// same for all of them, though their seeds are not.
func TestGeneratorsAgree(t *testing.T) {
	t.Parallel()
	a, b := Plan{Workload: workloads.Default(), Session: "s"}, Plan{Workload: workloads.Default(), Session: "s"}
	b.Workload.Seed = 2
	if a.order() != b.order() || slot(a.Workload) != slot(b.Workload) {
		t.Error("two generators of a session run different things at a time")
	}
	other := a
	other.Session = "t"
	if a.order() == other.order() {
		t.Error("every session has the same order")
	}
	a.Session, b.Session = "", ""
	if a.order() == b.order() {
		t.Error("the seed of a session alone does not shuffle its runs")
	}
	if room := slot(a.Workload) - a.Workload.Expected(); room < 3*time.Second {
		t.Errorf("there are %v from one run to the next", room)
	}
}
