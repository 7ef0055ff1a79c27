// Package drive has tests of stores drive a lock on a server for as long as it takes, and no
// longer: runs end by counts, so that a busy machine makes them longer and not fail.
package drive

import (
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Bound is how long anything may take: far more than a busy machine needs.
const Bound = time.Minute

// Thorough says whether every variant is tried, with LOCKBENCH_CONFORM=all, and not only
// those that matter most.
func Thorough() bool { return os.Getenv("LOCKBENCH_CONFORM") == "all" }

// ManyAtATime has parallel tests wait for servers at the same time, also where there are few
// cores. A TestMain calls it first; -parallel says otherwise.
func ManyAtATime() {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err) // it is a flag of every test
	}
}

// Workload is three clients of three instances that hold a lock so many times in all, for a
// millisecond: the machine has time for whoever looks on.
func Workload(times int64) workloads.Spec {
	w := workloads.Default()
	w.Clients, w.Instances, w.Warmup, w.Iterations = 3, 3, 0, times
	w.Hold = workloads.Fixed(time.Millisecond)
	return w
}

// Run drives a lock through a workload of at most one fault. With one, the workload's
// acquisitions are those after it is over. What does not come about within Bound fails the
// test, and so do overlaps and leftovers, and errors that no fault explains.
func Run(t testing.TB, server store.Server, session string, v strategies.Variant, w workloads.Spec) *results.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Bound)
	defer cancel()
	times := w.Iterations
	job := engine.Job{Strategy: v, Workload: w, Target: server, Session: session, Number: 1, Round: 1, Order: 1}
	after := &afterwards{Server: server, times: times, end: cancel}
	if len(w.Faults) > 0 {
		after.injector = server.Faults(w.Faults)
		defer after.injector.Close()
		job.Target, job.Faults, job.Observer, job.Workload.Iterations = after, faults{after}, after, math.MaxInt64
	}
	if wrong := errors.Join(append(server.Impossible(w.Faults), job.Workload.Validate())...); wrong != nil {
		t.Fatal(wrong)
	}
	run, err := job.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d acquisitions in %v, errors %v, faults %+v, invalid %v", run.Speed.Acquisitions, time.Duration(run.WindowNS), run.Errors, run.Faults, run.Invalid)
	had := run.Speed.Acquisitions
	if len(w.Faults) > 0 {
		had = after.had.Load()
	}
	if had < times {
		t.Errorf("the lock was had %d times of %d", had, times)
	}
	for _, f := range run.Faults {
		if len(f.Injections) != 1 {
			t.Errorf("%s struck %d times: %v", f.Fault.Name, len(f.Injections), f.Missed)
		}
	}
	if len(w.Faults) == 0 && len(run.Errors) > 0 {
		t.Errorf("errors %v", run.Errors)
	}
	if run.Safety.Overlaps > 0 {
		t.Errorf("%d were granted the lock beside another: %+v", run.Safety.Overlaps, run.Safety)
	}
	if left := run.Safety.LeftoverCount; left == nil || *left > 0 {
		t.Errorf("leftovers: %v", run.Safety.Leftovers)
	}
	return run
}
