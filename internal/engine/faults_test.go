package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

const shortTTL = 200 * time.Millisecond

// slow is the hold in tests that run for several seconds, so that leases can expire.
var slow = workloads.Fixed(20 * time.Millisecond)

// faulty returns a job with the given faults and three clients, each in a separate instance. change may edit the
// workload.
func faulty(t *testing.T, server *redistest.Server, strategy string, change func(*workloads.Spec),
	faults ...string,
) engine.Job {
	t.Helper()
	variants, err := strategies.ParseVariants(strategy)
	if err != nil {
		t.Fatal(err)
	}
	j := job(t, server, "spin", func(w *workloads.Spec) {
		w.Clients, w.Instances, w.TTL = 3, 3, workloads.Duration(shortTTL)
		w.Hold, w.Warmup, w.Duration = workloads.Fixed(5*time.Millisecond), 0, workloads.Duration(1500*time.Millisecond)
		for _, text := range faults {
			fault, err := workloads.ParseFault(text)
			if err != nil {
				t.Fatal(err)
			}
			w.Faults = append(w.Faults, fault)
		}
		if change != nil {
			change(w)
		}
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
	})
	j.Strategy = variants[0]
	return j
}

// carriedOut runs the job. It fails the test unless the time accounts balance, all clients return, nothing but keys is
// left over, and the report covers each fault.
func carriedOut(t *testing.T, j engine.Job) *results.Run {
	t.Helper()
	run, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !run.TimeAccounting.Balanced || run.Safety.Hung > 0 {
		t.Errorf("books %+v, %d clients hung", run.TimeAccounting, run.Safety.Hung)
	}
	if slices.ContainsFunc(run.Safety.Leftovers, func(name string) bool { return name[:3] != "key" }) {
		t.Errorf("left %v", run.Safety.Leftovers)
	}
	if len(run.Faults) != len(j.Workload.Faults) {
		t.Fatalf("%d faults of %d", len(run.Faults), len(j.Workload.Faults))
	}
	return run
}

// together runs test concurrently for each case. The tests mostly wait, so they do not slow each other down.
func together[T any](t *testing.T, cases []T, test func(t *testing.T, c T)) {
	t.Helper()
	t.Parallel()
	var all sync.WaitGroup
	for _, c := range cases {
		all.Go(func() { t.Run(fmt.Sprint(c), func(t *testing.T) { test(t, c) }) })
	}
	all.Wait()
}

// only returns the injection of the run's first fault. It fails the test unless that fault was injected exactly once.
func only(t *testing.T, run *results.Run) results.Injection {
	t.Helper()
	if len(run.Faults[0].Injections) != 1 {
		t.Fatalf("it was injected %d times, missed %v, invalid %v, errors %v", len(run.Faults[0].Injections),
			run.Faults[0].Missed, run.Invalid, run.Errors)
	}
	return run.Faults[0].Injections[0]
}

func counting(fence workloads.Fence) func(*workloads.Spec) {
	return func(w *workloads.Spec) { w.Work, w.Fence = workloads.WorkCounter, fence }
}

// outlived returns a fault that pauses a holder for ten times the TTL, and a change of the workload that makes the run
// long enough. Even on a busy machine, another client acquires the lock during the pause.
func outlived(fence workloads.Fence) (change func(*workloads.Spec), fault string) {
	return func(w *workloads.Spec) {
		counting(fence)(w)
		w.Duration = workloads.Duration(2500 * time.Millisecond)
	}, "holder-pause:at=50ms,for=2s"
}

func TestPausedHolderOverlapsAndLosesUpdates(t *testing.T) {
	together(t, []string{"spin", "pubsub", "fair", "handoff"}, func(t *testing.T, strategy string) {
		change, fault := outlived(workloads.FenceOff)
		run := carriedOut(t, faulty(t, redistest.Start(t), strategy, change, fault))
		s := only(t, run)
		if s.Late == 0 || s.LateNS == 0 || s.LastedNS < int64(2*shortTTL) {
			t.Errorf("injection %+v", s)
		}
		if lost := run.Safety.LostUpdates; lost == nil || *lost == 0 {
			t.Errorf("lost updates %v, errors %v", lost, run.Errors)
		}
		if s.RecoveryNS == nil || *s.RecoveryNS >= s.LastedNS {
			t.Errorf("no client got the lock for as long as its holder stood still: %+v", s)
		}
		if len(run.Safety.Broken) > 0 {
			t.Errorf("the lease had run out: %v", run.Safety.Broken)
		}
	})
}

func TestFencingStopsPausedHolder(t *testing.T) {
	together(t, []string{"fenced", "handoff"}, func(t *testing.T, strategy string) {
		change, fault := outlived(workloads.FenceAll)
		run := carriedOut(t, faulty(t, redistest.Start(t), strategy, change, fault))
		if s := only(t, run); s.Late == 0 {
			t.Errorf("injection %+v", s)
		}
		if lost, refused := run.Safety.LostUpdates, run.Safety.Refused; lost == nil || *lost > 0 || refused == nil ||
			*refused == 0 {
			t.Errorf("lost %v, refused %v updates", lost, refused)
		}
	})
}

func TestDeadHolderBlocksUntilTTLOrForever(t *testing.T) {
	const ttl = 2 * time.Second // a stall of the machine between acquisition and death takes little of it
	together(t, []string{"spin", "pubsub", "handoff", "setnx"}, func(t *testing.T, strategy string) {
		texts := []string{"holder-crash:at=50ms"}
		if strategy == "setnx" {
			texts = append(texts, "holder-pause:at=1s")
		}
		run := carriedOut(t, faulty(t, redistest.Start(t), strategy, func(w *workloads.Spec) {
			w.TTL, w.Duration, w.Hold = workloads.Duration(ttl), workloads.Duration(6*time.Second), slow
		}, texts...))
		s := only(t, run)
		if s.Overlaps+s.Late > 0 {
			t.Errorf("injection %+v", s)
		}
		if strategy == "setnx" {
			if s.RecoveryNS != nil || !s.Stall.AtLeast || len(run.Safety.Leftovers) != 1 {
				t.Errorf("stall %+v, left %v", s.Stall, run.Safety.Leftovers)
			}
			// The dead holder's lock has no TTL, so no live client holds it at 1 s, and the second fault is never injected. The
			// run must therefore be invalid.
			if second := run.Faults[1]; len(second.Injections) > 0 || len(second.Missed) != 1 || run.Valid() {
				t.Errorf("faults %+v, invalid %v", run.Faults, run.Invalid)
			}
			return
		}
		if s.RecoveryNS == nil {
			t.Fatalf("injection %+v", s)
		}
		// The crashed holder's lease began before the fault, so recovery may take less than a TTL.
		if took := time.Duration(*s.RecoveryNS); took < ttl/3 || s.Stall.NS < *s.RecoveryNS/2 {
			t.Errorf("recovered after %v of a TTL of %v, stall %+v", took, ttl, s.Stall)
		}
	})
}

func TestCrashBetweenTwoCommands(t *testing.T) {
	type crash struct {
		strategy string
		command  int
		recovers bool
	}
	together(t, []crash{
		{"setnx-expire", 1, false},
		{"setnx-expire", 2, true}, // dies while it holds the lock
		{"spin", 1, true},
	}, func(t *testing.T, c crash) {
		longer := func(w *workloads.Spec) { w.Duration = workloads.Duration(2500 * time.Millisecond) }
		run := carriedOut(t, faulty(t, redistest.Start(t), c.strategy, longer,
			fmt.Sprintf("crash-between:at=50ms,command=%d", c.command)))
		if s := only(t, run); (s.RecoveryNS != nil) != c.recovers {
			t.Errorf("injection %+v", s)
		}
	})
}

// The test kills five waiters. In Redisson's fair lock, each dead waiter at the head of the queue delays the others by
// wait-timeout. handoff notices the closed connection, so a dead waiter must cost less than half a TTL. The bounds
// leave room for a busy machine.
func TestCostOfDeadWaiters(t *testing.T) {
	const dead, timeout, window = 5, time.Second, 14 * time.Second // on a busy machine the waiters arrive one by one
	together(t, []string{"fair:wait-timeout=" + timeout.String(), "handoff"}, func(t *testing.T, strategy string) {
		ttl := 3 * time.Second // the waiters have half of it to join the queue
		run := carriedOut(t, faulty(t, redistest.Start(t), strategy, func(w *workloads.Spec) {
			w.TTL, w.Duration, w.Hold = workloads.Duration(ttl), workloads.Duration(window), slow
		}, fmt.Sprintf("waiter-crash:at=50ms,n=%d", dead)))
		s := only(t, run)
		if s.RecoveryNS == nil {
			t.Fatalf("injection %+v", s)
		}
		stall := time.Duration(s.Stall.NS)
		t.Logf("it stalls for %v behind %d", stall, dead)
		if strategy == "handoff" {
			if stall > dead*ttl/2 {
				t.Errorf("%d dead waiters cost %v", dead, stall)
			}
		} else if stall < dead*timeout*3/5 {
			t.Errorf("%d dead waiters cost %v", dead, stall)
		}
	})
}

func TestFaultsRepeat(t *testing.T) {
	t.Parallel()
	run := carriedOut(t, faulty(t, redistest.Start(t), "spin",
		func(w *workloads.Spec) { w.Duration = workloads.Duration(2500 * time.Millisecond) },
		"waiter-crash:at=50ms,every=300ms", "holder-crash:at=100ms,every=500ms"))
	for i, most := range []int{9, 5} {
		if n := len(run.Faults[i].Injections); n < 2 || n > most {
			t.Errorf("%v was injected %d times, missed %v", run.Faults[i].Fault, n, run.Faults[i].Missed)
		}
	}
}

// atomic is not a lock, so it must be refused unless the work is a counter and no fault is planned. In-process
// strategies support no faults, so local must be refused too.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for strategy, j := range map[string]engine.Job{
		"atomic":               job(t, server, "atomic", func(*workloads.Spec) {}),
		"local, with a fault":  faulty(t, server, "local", counting(workloads.FenceOff), "holder-crash:at=100ms"),
		"atomic, with a fault": faulty(t, server, "atomic", counting(workloads.FenceOff), "holder-crash:at=100ms"),
	} {
		if _, err := j.Run(t.Context()); !errors.Is(err, engine.ErrUnsupported) {
			t.Errorf("%s: error %v", strategy, err)
		}
	}
}

func TestInterruptEndsFault(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var run *results.Run
	for _, soon := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} {
		j := faulty(t, server, "spin", func(w *workloads.Spec) { w.Duration = workloads.Duration(time.Minute) },
			"holder-pause:at=50ms,for=40s")
		ctx, cancel := context.WithCancel(t.Context())
		j.Phase = func(phase string) {
			if phase == "measure" {
				time.AfterFunc(soon, cancel)
			}
		}
		began := time.Now()
		var err error
		if run, err = j.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > soon+30*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(run.Faults[0].Injections) > 0 {
			break
		}
		t.Logf("the machine is so busy that nothing had struck after %v", soon)
	}
	if s := only(t, run); !run.Partial || s.LastedNS == 0 {
		t.Errorf("partial %v, strike %+v", run.Partial, s)
	}
	if keys := server.Client(t).DBSize(t.Context()).Val(); keys > 0 {
		t.Errorf("%d keys left on the server", keys)
	}
}
