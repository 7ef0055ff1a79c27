// Package drive lets tests of stores drive a lock on a server. A run ends after a number of acquisitions, not after a
// time, so on a busy machine it takes longer but does not fail.
package drive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Bound is the time limit for each step of a test. It is far longer than a busy machine needs.
const Bound = time.Minute

// Workload returns a workload in which three clients, each on its own instance, make the given number of acquisitions
// in total. Each hold lasts a millisecond, which leaves observers enough CPU time.
func Workload(times int64) workloads.Spec {
	w := workloads.Default()
	w.Clients, w.Instances, w.Warmup, w.Iterations = 3, 3, 0, times
	w.Hold = workloads.Fixed(time.Millisecond)
	return w
}

// Faults parses faults in the form of --fault.
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

// Run makes the clients of a workload acquire a lock w.Iterations times. The workload may have one fault; acquisitions
// before the end of the fault then do not count. The test fails if clients overlap, if leftovers remain, if tokens
// decrease although the server kept its data, or if the run takes longer than Bound. Without a fault, it also fails on
// any error. If the workload increments a counter, the counter is on a separate Redis.
func Run(t testing.TB, server store.Server, session string, v strategies.Variant, w workloads.Spec) *results.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Bound)
	defer cancel()
	times := w.Iterations
	job := engine.Job{Strategy: v, Workload: w, Target: server, Session: session, Number: 1, Round: 1, Order: 1}
	if w.Work == workloads.WorkCounter {
		redis, err := store.Lookup(store.Redis)
		if err != nil {
			t.Fatal(err)
		}
		job.Hub = Open(t, redis, store.Options{Address: "process"}).(store.Hub)
	}
	if w.Work == workloads.WorkTransaction {
		job.Transactor = server.(store.Transactor)
	}
	after := &ender{Server: server, times: times, end: cancel}
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
		t.Errorf("the lock was acquired %d times instead of %d", had, times)
	}
	for _, f := range run.Faults {
		if len(f.Injections) != 1 {
			t.Errorf("the fault %s was injected %d times instead of once: %v", f.Fault.Name, len(f.Injections), f.Missed)
		}
	}
	if len(w.Faults) == 0 && len(run.Errors) > 0 {
		t.Errorf("errors %v", run.Errors)
	}
	if run.Safety.Overlaps > 0 {
		t.Errorf("%d clients acquired the lock while another client held it: %+v", run.Safety.Overlaps, run.Safety)
	}
	forgets := slices.ContainsFunc(w.Faults, func(f workloads.Fault) bool { return f.Data == workloads.DataLose })
	if run.Safety.FencingRegression > 0 && !forgets { // a server that lost its data issues tokens from the beginning
		t.Errorf("%d fencing tokens are not larger than an earlier token", run.Safety.FencingRegression)
	}
	if left := run.Safety.LeftoverCount; left == nil || *left > 0 {
		t.Errorf("leftovers: %v", run.Safety.Leftovers)
	}
	return run
}

// Sound reports whether a run is valid, or invalid only because the machine is busy.
func Sound(run *results.Run) bool {
	return !slices.ContainsFunc(run.Invalid,
		func(why results.Remark) bool { return why.Code != results.SeenLate })
}

// ender ends a run as soon as the clients have made the required number of acquisitions after the end of the run's
// fault. A fault of servers ends when it is undone. A fault of a client ends when the client's instance is closed.
type ender struct {
	store.Server
	injector store.Injector
	times    int64
	end      func()
	over     atomic.Bool
	had      atomic.Int64 // acquisitions since the end of the fault
}

// Connect wraps the instance, because the ender must notice when the instance is closed.
func (a *ender) Connect(ctx context.Context, name string, pool int, detour store.Through) (store.Instance, error) {
	i, err := a.Server.Connect(ctx, name, pool, detour)
	if err != nil {
		return nil, err
	}
	return instance{i, a}, nil
}

type instance struct {
	store.Instance
	of *ender
}

// Close records the end of a client's fault: during the window, the engine closes only the instance that the fault hit.
func (i instance) Close() error {
	defer i.of.over.Store(true)
	return i.Instance.Close()
}

// faults injects the run's fault and records when the fault ends.
type faults struct{ *ender }

func (f faults) Detour(instance int) store.Through { return f.injector.Detour(instance) }

func (f faults) Prepare(ctx context.Context, fault workloads.Fault, where store.RunMarks) (store.Action, error) {
	action, err := f.injector.Prepare(ctx, fault, where)
	if end := action.End; end != nil {
		action.End = func(ctx context.Context) error {
			defer f.over.Store(true)
			return end(ctx)
		}
	}
	return action, err
}

// Holding implements engine.Observer.
func (*ender) Holding(int) {}

// Releasing implements engine.Observer.
func (*ender) Releasing(int) {}

// Acquired counts the acquisitions since the end of the fault, and ends the run after the required number.
func (a *ender) Acquired(engine.Acquisition) {
	if a.over.Load() && a.had.Add(1) == a.times {
		a.end()
	}
}

// Serve returns the address of a server that calls answer for each connection and then closes the connection. The
// server ends with the test.
func Serve(t testing.TB, answer func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { // so that no connection waits for another
				answer(conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	return listener.Addr().String()
}

// Shared is a server that the tests of a package share where possible, because its start takes a second or two.
type Shared struct{ open func() (store.Server, error) }

// Share returns a Shared server of a store, which starts on first use.
func Share(kind store.Store) Shared {
	return Shared{sync.OnceValues(func() (store.Server, error) {
		return kind.Open(context.Background(), store.NewRunID(), store.Options{})
	})}
}

// Main is a TestMain: it runs the tests, closes the server, and fails if goroutines are left.
func (s Shared) Main(m *testing.M) {
	poll.ManyAtATime()
	code := m.Run()
	server, err := s.open()
	if err == nil {
		err = server.Close(context.Background())
	}
	if err = errors.Join(err, goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Get returns the shared server and starts it at the first call. The test fails if the server cannot start.
func (s Shared) Get(t testing.TB) store.Server {
	t.Helper()
	server, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// Open opens a store. When the test ends, it closes the store with a context that has ended.
func Open(t testing.TB, kind store.Store, o store.Options) store.Server {
	t.Helper()
	server, err := kind.Open(t.Context(), store.NewRunID(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := server.Close(ended); err != nil {
			t.Error(err)
		}
	})
	return server
}
