package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/blpop"
	"github.com/lockbench/lockbench/strategies/gated"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/workloads"
)

// Only these strategies are registered, so that a change to any other does not invalidate Go's cached test results.
func init() {
	strategies.RegisterStrategy(append(baselines.Strategies(), blpop.Strategy(), handoff.Strategy())...)
	strategies.RegisterStrategy(append(polled.Strategies(), redisson.Strategies()...)...)
	strategies.RegisterWrapper(gated.Wrapper())
}

func job(t *testing.T, server *redistest.Server, strategy string, change func(*workloads.Spec)) engine.Job {
	t.Helper()
	v, err := strategies.NewVariant(strategy, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := workloads.Default()
	w.Clients, w.Instances = 20, 4
	w.Warmup, w.Duration = workloads.Duration(100*time.Millisecond), workloads.Duration(500*time.Millisecond)
	change(&w)
	target, err := servers.Open(t.Context(), servers.Options{Address: server.URL(), RunID: "e5700000"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return engine.Job{Strategy: v, Workload: w, Target: target, Session: "e5700000", Number: 1, Round: 1, Order: 1}
}

func TestLostUpdatesAreCountedInData(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		strategy string
		loses    bool
	}{{"spin", false}, {"atomic", false}, {"noop", true}} {
		run, err := job(t, server, test.strategy,
			func(w *workloads.Spec) { w.Work, w.Iterations = workloads.WorkCounter, 300 }).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !drive.Sound(run) || len(run.Errors) > 0 || *run.Safety.LeftoverCount > 0 || run.Speed.Acquisitions == 0 {
			t.Errorf("%s: invalid %v, errors %v, left %v", test.strategy, run.Invalid, run.Errors, run.Safety.Leftovers)
		}
		if lost := run.Safety.LostUpdates; lost == nil || (*lost > 0) != test.loses {
			t.Errorf("%s lost %v updates", test.strategy, lost)
		}
	}
	if keys := server.Client(t).DBSize(t.Context()).Val(); keys > 0 {
		t.Errorf("%d keys left on the server", keys)
	}
}

// Before and after a run, an observer reads the server's command count. The report must count the same commands, except
// those of the observer.
func TestServerCountsMatchObserver(t *testing.T) {
	server := redistest.Start(t)
	j := job(t, server, "spin", func(w *workloads.Spec) {
		w.Clients, w.Instances, w.Warmup, w.Iterations = 1, 1, 0, 2000
	})
	before := observe(t, server)
	run, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole, seen := run.Server.Whole, observe(t, server)-before
	if whole == nil || whole.Calls == nil {
		t.Fatal("no counts")
	}
	if off := seen - *whole.Calls; off < 0 || off > 60 { // the observer's own commands
		t.Errorf("counted %d commands, the observer %d", *whole.Calls, seen)
	}
	if *whole.OtherTraffic > 1 {
		t.Errorf("%.2f %% other clients' traffic on a server of our own", *whole.OtherTraffic)
	}
	// The server counts four commands per turn: SET, and EVALSHA, whose script calls GET and DEL.
	if extra := *whole.Calls - 4*whole.Acquisitions; extra < 0 || extra > 200 {
		// The extra commands are those of connecting, of the pings, of the search for leftovers and of the cleanup.
		t.Errorf("%d commands for %d acquisitions, want 4 for each", *whole.Calls, whole.Acquisitions)
	}
	// The engine's counts and the server's are read at slightly different instants. On a busy machine, some turns
	// therefore count for only one of them.
	window := run.Server.Window
	if window == nil {
		t.Fatalf("no counts of the window: %v", run.Labels)
	}
	if per := *window.PerAcquisition(window.Calls); per < 3.8 || per > 4.2 {
		t.Errorf("%.3f commands per acquisition, want 4", per)
	}
	if per := *window.PerAcquisition(window.RoundTrips); per < 1.9 || per > 2.1 {
		t.Errorf("%.3f round trips per acquisition, want 2", per)
	}
	if attempts := *run.Effort.Attempts; attempts < 0.95 || attempts > 1.05 {
		t.Errorf("%.3f attempts per acquisition, want 1", attempts)
	}
}

// observe returns how many commands the server has executed, as read through a separate connection.
func observe(t *testing.T, server *redistest.Server) int64 {
	t.Helper()
	target, err := servers.Open(t.Context(), servers.Options{Address: server.URL(), RunID: "observer"})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close(context.Background())
	reading, err := target.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return *reading.Since(results.Reading{Commands: map[string]int64{}}, 0).Calls
}

// eventually is an Observer that calls do at the nth acquisition of the window.
type eventually struct {
	n  atomic.Int64
	do func()
}

func (e *eventually) Holding(int)   {}
func (e *eventually) Releasing(int) {}
func (e *eventually) Acquired(a engine.Acquisition) {
	if a.Counted && e.n.Add(-1) == 0 {
		e.do()
	}
}

func TestRunEndsWhenRedisDies(t *testing.T) {
	server := redistest.Start(t)
	j := job(t, server, "spin", func(w *workloads.Spec) { w.Duration = workloads.Duration(time.Minute) })
	kill := &eventually{do: server.Kill}
	kill.n.Store(100)
	j.Observer = kill
	run, err := j.Run(t.Context())
	if !errors.Is(err, engine.ErrServerGone) {
		t.Fatalf("error %v", err)
	}
	if run == nil || run.Failure == "" || run.Valid() || len(run.Errors) == 0 || run.Speed.Acquisitions == 0 {
		t.Errorf("run %+v", run)
	}
	if !run.TimeAccounting.Balanced {
		t.Errorf("books %+v", run.TimeAccounting)
	}
}

// silences injects node faults into one server. The first fault has no effect, and each later one pauses the server
// until it ends.
type silences struct {
	store.Faults
	server *redistest.Server
	begun  int
}

func (s *silences) Detour(int) store.Through { return nil }

func (s *silences) Prepare(context.Context, workloads.Fault, store.RunMarks) (store.Action, error) {
	nothing := func(context.Context) error { return nil }
	if s.begun++; s.begun == 1 {
		return store.Action{Hit: nothing, End: nothing}, nil
	}
	return store.Action{
		Hit: func(context.Context) error { s.server.Pause(); return nil },
		End: func(context.Context) error { s.server.Resume(); return nil },
	}, nil
}

// With two nodes down at a time, a quorum may be impossible, so the run must continue although the server is silent.
// With one node down, a quorum is possible, so the silence must end the run.
func TestConcurrentFaultsExplainSilence(t *testing.T) {
	t.Parallel()
	for begun, want := range []error{nil, engine.ErrServerGone} {
		t.Run(fmt.Sprint(2-begun), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			faults := []string{"node-down:at=50ms,for=6s,node=0", "node-down:at=200ms,for=5s,node=1"}[begun:]
			j := faulty(t, server, "spin", func(w *workloads.Spec) {
				w.Duration = workloads.Duration(7 * time.Second)
			}, faults...)
			j.Faults = &silences{server: server, begun: begun}
			if _, err := j.Run(t.Context()); !errors.Is(err, want) {
				t.Errorf("it ended with %v, want %v", err, want)
			}
		})
	}
}

// The server stops replying before the end of the window, when its counters are read again. The run must be invalid
// because of the server, not because of a busy generator.
func TestServerSilentAtWindowEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	j := job(t, server, "spin", func(w *workloads.Spec) { w.Duration = workloads.Duration(700 * time.Millisecond) })
	j.Phase = func(phase string) {
		if phase == "measure" {
			time.AfterFunc(500*time.Millisecond, func() {
				server.Pause()
				time.AfterFunc(1200*time.Millisecond, server.Resume)
			})
		}
	}
	run, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if why := run.Invalid.String(); !strings.Contains(why, "the server took ") || strings.Contains(why, "too busy") {
		t.Errorf("the server stood still over the end of the window: invalid %q", run.Invalid)
	}
}

// A stall of the server for one second shows in the percentiles of an open loop, because waits count from the intended
// start of their arrivals.
func TestStallShowsInOpenLoop(t *testing.T) {
	server := redistest.Start(t)
	j := job(t, server, "spin", func(w *workloads.Spec) {
		w.Clients, w.Instances, w.Rate = 200, 2, 200
		w.Duration = workloads.Duration(4 * time.Second)
	})
	j.Phase = func(phase string) {
		if phase == "measure" {
			time.AfterFunc(time.Second, func() {
				server.Pause()
				time.AfterFunc(time.Second, server.Resume)
			})
		}
	}
	run, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A quarter of the arrivals fall into the stall of one second. Those in its first fifth, 5 % of all, wait for more
	// than 0.8 s, so the 99th percentile is above 0.8 s.
	if p := run.Waiting.PerAcquisition.P99; p == nil || time.Duration(p.NS) < 800*time.Millisecond {
		t.Errorf("p99 %+v, invalid %v, errors %v", p, run.Invalid, run.Errors)
	}
	if stall := run.Speed.Stall; stall == nil || time.Duration(*stall) < 500*time.Millisecond {
		t.Errorf("the server stood still for a second, and it noted %v", stall)
	}
	if !run.TimeAccounting.Balanced {
		t.Errorf("books %+v", run.TimeAccounting)
	}
}

// Two variants are mixed, each with half of the clients, and all clients update the same counter. With pubsub and gated
// pubsub, no update may be lost. With noop, which excludes no client, updates must be lost.
func TestMixedStrategySharesKeys(t *testing.T) {
	server := redistest.Start(t)
	for list, loses := range map[string]bool{"pubsub+gated:pubsub": false, "noop+noop": true} {
		mixed, err := strategies.ParseVariants(list)
		if err != nil {
			t.Fatal(err)
		}
		j := job(t, server, "pubsub", func(w *workloads.Spec) { w.Work, w.Iterations = workloads.WorkCounter, 300 })
		j.Strategy, j.Workload.Instances = mixed[0], 3
		run, err := j.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if lost := run.Safety.LostUpdates; lost == nil || (*lost > 0) != loses || (run.Safety.MaxHolders > 1) != loses {
			t.Errorf("%s lost %v updates: %+v", list, lost, run.Safety)
		}
		if !drive.Sound(run) || len(run.Parts) != 2 || run.Parts[0].Clients != 10 || run.Parts[1].Clients != 10 ||
			run.Parts[0].Acquisitions == 0 || run.Parts[1].Acquisitions == 0 ||
			run.Parts[0].Acquisitions+run.Parts[1].Acquisitions != run.Speed.Acquisitions {
			t.Errorf("%s: invalid %v, parts %+v", list, run.Invalid, run.Parts)
		}
	}
}
