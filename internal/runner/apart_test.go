package runner

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// Counters that are kept apart are of one lockbench: generators of a session would count
// past each other, and seem to have measured on several servers.
func TestCountersApartAreNotShared(t *testing.T) {
	w := workloads.Default()
	w.Work, w.Counter = workloads.WorkCounter, workloads.CounterApart
	plan := Plan{Workload: w, Rounds: 1, Session: "may7", Stores: map[string]store.Options{store.Redis: {Address: "redis://127.0.0.1:1"}}}
	if err := plan.Validate(); err == nil || !strings.Contains(err.Error(), "--counter apart") {
		t.Error(err)
	}
	plan.Session = ""
	if err := plan.Validate(); err != nil && strings.Contains(err.Error(), "--counter apart") {
		t.Error(err)
	}
}
