package lockbench

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Without a seed two sessions are to run the strategies in orders of their own; with
// one they repeat each other.
func TestAPlanWithoutASeedDrawsOne(t *testing.T) {
	t.Parallel()
	var plan Plan
	plan.Workload = workloads.Default()
	plan.Sweep = []workloads.Point{
		{Label: "keys=1", Workload: workloads.Default()}, {Label: "keys=2", Workload: workloads.Default()},
	}
	seen := map[int64]bool{}
	for range 8 {
		drawn := plan.seeded()
		seed := drawn.Workload.Seed
		if seed <= 0 || seen[seed] {
			t.Errorf("seed %d, after %v", seed, seen)
		}
		seen[seed] = true
		for _, point := range drawn.Sweep {
			if point.Workload.Seed != seed {
				t.Errorf("%s has seed %d, not %d", point.Label, point.Workload.Seed, seed)
			}
		}
		if drawn.order() != uint64(seed) {
			t.Errorf("the order is of %d, not of seed %d", drawn.order(), seed)
		}
	}
	if plan.Sweep[0].Workload.Seed != 0 {
		t.Error("the caller's plan was changed")
	}
	plan.Workload.Seed, plan.Sweep[0].Workload.Seed, plan.Sweep[1].Workload.Seed = 7, 7, 7
	if got := plan.seeded(); got.Workload.Seed != 7 || got.Sweep[1].Workload.Seed != 7 {
		t.Errorf("a seed that was given is %d", got.Workload.Seed)
	}
}

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
