package zookeeper

import (
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
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

// workload is three clients in three processes, for a moment.
func workload(change func(*workloads.Spec)) workloads.Spec {
	w := workloads.Default()
	w.Clients, w.Instances, w.Warmup, w.Duration = 3, 3, 0, workloads.Duration(time.Second)
	if change != nil {
		change(&w)
	}
	return w
}

// drive runs the lock, and checks what must be so in every run.
func drive(t *testing.T, s *Server, w workloads.Spec) *results.Run {
	t.Helper()
	job := engine.Job{Strategy: variant(t), Workload: w, Target: s, Session: store.NewRunID(), Number: 1}
	if len(w.Faults) > 0 {
		faults := s.Faults(w.Faults)
		defer faults.Close()
		job.Faults = faults
	}
	run, err := job.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d acquisitions, %d overlaps, %d late, %d lost, errors %v, invalid %v, leftovers %v", run.Speed.Acquisitions, run.Safety.Overlaps, run.Safety.Late, run.Safety.LostLeases, run.Errors, run.Invalid, run.Safety.Leftovers)
	forgets := slices.ContainsFunc(w.Faults, func(f workloads.Fault) bool { return f.Name == workloads.Kill && f.Data == workloads.DataLose })
	if run.Safety.Overlaps > 0 || (run.Safety.FencingRegression > 0) != forgets { // without its data it counts from the beginning
		t.Errorf("%d overlaps, %d tokens not larger than an earlier one", run.Safety.Overlaps, run.Safety.FencingRegression)
	}
	if left := run.Safety.LeftoverCount; left == nil || *left != 0 {
		t.Errorf("left behind: %v", run.Safety.Leftovers)
	}
	return run
}

func TestRun(t *testing.T) {
	for name, work := range map[string]workloads.Work{"hold": "", "counter": workloads.WorkCounter} {
		t.Run(name, func(t *testing.T) {
			run := drive(t, common(t), workload(func(w *workloads.Spec) {
				if work != "" {
					w.Work = work
				}
			}))
			if !run.Valid() || run.Speed.Acquisitions < 10 || len(run.Errors) > 0 {
				t.Errorf("%d acquisitions, invalid %v, errors %v", run.Speed.Acquisitions, run.Invalid, run.Errors)
			}
			whole := run.Server.Whole
			if whole == nil || whole.CPU == nil || *whole.CPU <= 0 || whole.BytesIn == nil || *whole.BytesIn <= 0 ||
				whole.RoundTrips == nil || *whole.RoundTrips < 3*whole.Acquisitions {
				t.Fatalf("the server's part: %+v", whole)
			}
			if whole.Commands["write"] < 2*whole.Acquisitions {
				t.Errorf("%d acquisitions are %v: each creates a node and deletes it", whole.Acquisitions, whole.Commands)
			}
			if lost := run.Safety.LostUpdates; work != "" && (lost == nil || *lost != 0) {
				t.Errorf("lost updates: %v", lost)
			}
		})
	}
}
