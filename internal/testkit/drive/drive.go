// Package drive lets tests of stores drive a lock on a server. Runs end by counts and not by
// time: on a busy machine they take longer and do not fail.
package drive

import (
	"context"
	"errors"
	"flag"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Bound limits how long anything may take: it is far more than a busy machine needs.
const Bound = time.Minute

// ManyAtATime lets parallel tests wait for servers at the same time, also on few cores. A
// TestMain calls it first; -parallel overrides it.
func ManyAtATime() {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err) // every test binary has this flag
	}
}

// Workload has three clients on three instances, which hold a lock this many times in all,
// for a millisecond each: observers need the rest of the machine.
func Workload(times int64) workloads.Spec {
	w := workloads.Default()
	w.Clients, w.Instances, w.Warmup, w.Iterations = 3, 3, 0, times
	w.Hold = workloads.Fixed(time.Millisecond)
	return w
}

// Faults parses faults.
func Faults(t testing.TB, texts ...string) (all []workloads.Fault) {
	t.Helper()
	for _, text := range texts {
		fault, err := workloads.ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fault)
	}
	return all
}

// Run drives a lock through a workload with at most one fault. With a fault, it counts the
// workload's acquisitions after the fault is over. The test fails if the run takes longer than
// Bound, on overlaps, leftovers and tokens that go back, and on errors without a fault.
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
	t.Logf("%d acquisitions in %v, errors %v, faults %+v, invalid %v", run.Speed.Acquisitions,
		time.Duration(run.WindowNS), run.Errors, run.Faults, run.Invalid)
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
	forgets := slices.ContainsFunc(w.Faults, func(f workloads.Fault) bool { return f.Data == workloads.DataLose })
	if run.Safety.FencingRegression > 0 && !forgets { // without its data a server counts from the beginning
		t.Errorf("%d tokens are not larger than an earlier one", run.Safety.FencingRegression)
	}
	if left := run.Safety.LeftoverCount; left == nil || *left > 0 {
		t.Errorf("leftovers: %v", run.Safety.Leftovers)
	}
	return run
}

// Sound says whether nothing but a busy machine makes a run invalid.
func Sound(run *results.Run) bool {
	return !slices.ContainsFunc(run.Invalid,
		func(why string) bool { return !strings.HasPrefix(why, "it was observed for") })
}
