package session

import (
	"testing"

	"github.com/lockbench/lockbench/workloads"
)

// Plans without a seed must draw different seeds, and so different orders of the strategies. With the same seed the
// order must be the same.
func TestPlanWithoutSeedDrawsOne(t *testing.T) {
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
		if order := (&session{plan: drawn}).order(); order != uint64(seed) {
			t.Errorf("the order is of %d, not of seed %d", order, seed)
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
