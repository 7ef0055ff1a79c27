package engine_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Some holds outlive the TTL. A resource that checks the token at every access must refuse updates, and none may be
// lost. One that checks only writes must refuse updates too, but some must still be lost.
func TestResourceRefusesStaleTokens(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		fence          workloads.Fence
		loses, refuses bool
	}{{workloads.FenceAll, false, true}, {workloads.FenceWrites, true, true}, {workloads.FenceOff, true, false}} {
		j := job(t, server, "fenced", func(w *workloads.Spec) {
			w.Work, w.Fence, w.TTL = workloads.WorkCounter, test.fence, workloads.Duration(20*time.Millisecond)
			if err := w.Hold.UnmarshalText([]byte("uniform:1ms,60ms")); err != nil {
				t.Fatal(err)
			}
			w.Warmup, w.Iterations = 0, 40 // independent of the time
		})
		v, err := strategies.ParseVariants("fenced:watchdog=false")
		if err != nil {
			t.Fatal(err)
		}
		j.Strategy = v[0]
		run, err := j.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := run.Safety
		if s.LostUpdates == nil || (*s.LostUpdates > 0) != test.loses {
			t.Errorf("fence %s: lost %v updates", test.fence, s.LostUpdates)
		}
		if (s.Refused != nil && *s.Refused > 0) != test.refuses {
			t.Errorf("fence %s: refused %v updates", test.fence, s.Refused)
		}
		if *s.LeftoverCount > 0 {
			t.Errorf("fence %s: left %v", test.fence, s.Leftovers)
		}
	}
}

// One release triggers an attempt by one waiter, by one waiter per instance, or by all waiters, depending on the
// strategy.
func TestAttemptsPerRelease(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		strategy    string
		least, most float64 // attempts, of 19 waiters in 4 instances
	}{{"blpop", 1, 1}, {"pubsub", 1, 4}, {"pubsub-broadcast", 10, 19}} {
		run, err := job(t, server, test.strategy, func(w *workloads.Spec) {
			w.Burst, w.Warmup, w.Iterations = workloads.Duration(250*time.Millisecond), 0, 50 // two and a half bursts
		}).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h := run.Herd
		if h == nil || h.Bursts == 0 || h.Attempts == nil || *h.Attempts < test.least || *h.Attempts > test.most {
			t.Errorf("%s: %+v, want from %g to %g attempts", test.strategy, h, test.least, test.most)
			continue
		}
		if h.FirstHandoff.Count != h.Bursts || h.Drain.Count != h.Bursts || *h.Commands < *h.Attempts ||
			h.DrainCommands == nil {
			t.Errorf("%s: %+v", test.strategy, h)
		}
		invalid := slices.DeleteFunc(run.Invalid, tooBusy)
		if len(invalid) > 0 || !run.TimeAccounting.Balanced || len(run.Errors) > 0 || *run.Safety.LeftoverCount > 0 {
			t.Errorf("%s: %v %v %v", test.strategy, invalid, run.Errors, run.Safety.Leftovers)
		}
	}
}

func tooBusy(why results.Remark) bool { return why.Code == results.SeenLate }

func TestSpinningHoldIsExact(t *testing.T) {
	run, err := job(t, redistest.Start(t), "spin", func(w *workloads.Spec) {
		w.Clients, w.Instances, w.Work, w.Hold = 1, 1, workloads.WorkSpin, workloads.Fixed(100*time.Microsecond)
		w.Warmup, w.Iterations = 0, 300
	}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The work spins for 100 µs. A hold that a timer ended would last a millisecond or more.
	if hold := run.Speed.Hold.P50.NS; hold < int64(100*time.Microsecond) || hold > int64(time.Millisecond) {
		t.Errorf("a hold of 100 µs took %v", time.Duration(hold))
	}
}

// If holds outlive their leases, the run must get a label, even if no two holders overlap. A lock with a watchdog
// extends its leases and must get no such label.
func TestHoldsBeyondLeaseAreLabelled(t *testing.T) {
	redis := redistest.Start(t)
	for _, test := range []struct {
		strategy  string
		hold, ttl time.Duration
		said      bool
	}{
		{"spin", 300 * time.Millisecond, 200 * time.Millisecond, true},
		{"spin", 0, time.Minute, false},
		{"pubsub", 300 * time.Millisecond, 200 * time.Millisecond, false},
	} {
		j := job(t, redis, test.strategy, func(w *workloads.Spec) {
			w.Clients, w.Instances, w.Iterations = 1, 1, 2
			w.TTL, w.Hold = workloads.Duration(test.ttl), workloads.Fixed(test.hold)
		})
		run, err := j.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said := run.Labels.Has(results.OutlivedLease)
		if said != test.said {
			t.Errorf("%s holds for %v under a TTL of %v: labels %q", test.strategy, test.hold, j.Workload.TTL,
				run.Labels)
		}
	}
}

// interrupting is a Target whose Read interrupts the run while the run measures.
type interrupting struct {
	store.Target
	measuring atomic.Bool
	interrupt func()
}

func (i *interrupting) Read(ctx context.Context) (results.Reading, error) {
	if i.measuring.Load() {
		i.interrupt()
	}
	return i.Target.Read(ctx)
}

// The test interrupts the run while it reads the server's counters, which cancels the reading. The report must not
// count the cancelled reading as an error.
func TestInterruptedReadingIsNotAnError(t *testing.T) {
	j := job(t, redistest.Start(t), "spin", func(w *workloads.Spec) { w.Duration = workloads.Duration(time.Minute) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := &interrupting{Target: j.Target, interrupt: cancel}
	j.Target = target
	j.Phase = func(phase string) { target.measuring.Store(phase == "measure") }
	run, err := j.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !run.Partial || len(run.Errors) > 0 {
		t.Errorf("partial %v, errors %v", run.Partial, run.Errors)
	}
}
