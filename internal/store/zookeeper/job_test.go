package zookeeper

import (
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	lock "github.com/lockbench/lockbench/strategies/zookeeper"
	"github.com/lockbench/lockbench/workloads"
)

// variant is the lock to be driven.
func variant(t *testing.T) strategies.Variant {
	t.Helper()
	v, err := lock.Strategy().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// run drives the lock until it was had fifty times, or so often after a fault.
func run(t *testing.T, s *Server, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	w := drive.Workload(50)
	if change != nil {
		change(&w)
	}
	got := drive.Run(t, s, store.NewRunID(), variant(t), w)
	forgets := slices.ContainsFunc(w.Faults, func(f workloads.Fault) bool { return f.Name == workloads.Kill && f.Data == workloads.DataLose })
	if got.Safety.FencingRegression > 0 && !forgets { // without its data it counts from the beginning
		t.Errorf("%d tokens are not larger than an earlier one", got.Safety.FencingRegression)
	}
	return got
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, work := range []workloads.Work{workloads.WorkNone, workloads.WorkCounter} {
		t.Run(string(work), func(t *testing.T) {
			got := run(t, common(t), func(w *workloads.Spec) { w.Work = work })
			whole := got.Server.Whole
			if whole == nil || whole.CPU == nil || *whole.CPU <= 0 || whole.BytesIn == nil || *whole.BytesIn <= 0 ||
				whole.RoundTrips == nil || *whole.RoundTrips < 3*whole.Acquisitions {
				t.Fatalf("the server's part: %+v", whole)
			}
			if whole.Commands["write"] < 2*whole.Acquisitions {
				t.Errorf("%d acquisitions are %v: each creates a node and deletes it", whole.Acquisitions, whole.Commands)
			}
			if lost := got.Safety.LostUpdates; work == workloads.WorkCounter && (lost == nil || *lost != 0) {
				t.Errorf("lost updates: %v", lost)
			}
		})
	}
}
