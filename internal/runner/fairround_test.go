package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func TestAWindowShorterThanAFairRoundIsSaidBeforehand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*workloads.Spec)
		permit int
		says   string // "" is no warning
	}{
		{"a round of 10 s in 5", func(*workloads.Spec) {}, 1, "take 10s; from --duration 22s on"},
		{"a round in 10", func(w *workloads.Spec) { w.Duration = workloads.Duration(10 * time.Second) }, 1, ""},
		{"on two keys", func(w *workloads.Spec) { w.Keys = 2 }, 1, ""},
		{"on two keys in 4", func(w *workloads.Spec) { w.Keys, w.Duration = 2, workloads.Duration(4*time.Second) }, 1, "take 5s; from --duration 11s on"},
		{"under two permits", func(*workloads.Spec) {}, 2, ""},
		{"as many as ask", func(*workloads.Spec) {}, 0, ""},
		{"an open loop", func(w *workloads.Spec) { w.Rate = 10 }, 1, ""},
		{"no hold", func(w *workloads.Spec) { w.Hold = workloads.Dist{} }, 1, ""},
		{"too few iterations", func(w *workloads.Spec) { w.Iterations = 499 }, 1, "from 1000 on"},
		{"enough iterations", func(w *workloads.Spec) { w.Iterations = 500 }, 1, ""},
	} {
		info := strategies.Info{Name: "some", Capacity: test.permit}
		plan := Plan{Strategies: []strategies.Variant{strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) { return nil, nil })}, Workload: workloads.Default()}
		plan.Workload.Clients, plan.Workload.Hold = 500, workloads.Fixed(20*time.Millisecond)
		test.change(&plan.Workload)
		got := strings.Join(plan.Warnings(), "; ")
		if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, want %q", test.name, got, test.says)
		}
	}
}
