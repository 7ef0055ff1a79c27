// Package drive lets tests of stores drive a lock on a server. Runs end after a number of acquisitions and not at a
// time, so on a busy machine they take longer but do not fail.
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

// Bound limits any step. It is far longer than a busy machine needs.
const Bound = time.Minute

// Workload returns a workload of three clients on three instances that hold a lock this many times in total, for a
// millisecond each, so that observers get enough CPU time.
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

// Run drives a lock through a workload with at most one fault. With a fault, only acquisitions after its end count. The
// test fails on overlaps, leftovers, decreasing tokens and, without a fault, on errors, and if the run takes longer
// than Bound. A counter is on a Redis.
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
		t.Errorf("the lock was acquired %d times of %d", had, times)
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
		t.Errorf("%d clients got the lock while another held it: %+v", run.Safety.Overlaps, run.Safety)
	}
	forgets := slices.ContainsFunc(w.Faults, func(f workloads.Fault) bool { return f.Data == workloads.DataLose })
	if run.Safety.FencingRegression > 0 && !forgets { // a server that lost its data issues tokens from the beginning
		t.Errorf("%d tokens are not larger than an earlier one", run.Safety.FencingRegression)
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

// afterwards ends a run once the lock was acquired often enough after the end of its fault. A fault of servers ends
// when it is undone. A fault of a client ends when the client's instance is closed.
type afterwards struct {
	store.Server
	injector store.Injector
	times    int64
	end      func()
	over     atomic.Bool
	had      atomic.Int64 // acquisitions since the end of the fault
}

// Connect wraps the instance, so that afterwards sees when it is closed.
func (a *afterwards) Connect(ctx context.Context, name string, pool int, detour store.Through) (store.Instance, error) {
	i, err := a.Server.Connect(ctx, name, pool, detour)
	if err != nil {
		return nil, err
	}
	return instance{i, a}, nil
}

type instance struct {
	store.Instance
	of *afterwards
}

// Close is called within the window only for the instance that the fault hit.
func (i instance) Close() error {
	defer i.of.over.Store(true)
	return i.Instance.Close()
}

// faults injects the run's fault, and records its end.
type faults struct{ *afterwards }

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
func (*afterwards) Holding(int) {}

// Releasing implements engine.Observer.
func (*afterwards) Releasing(int) {}

// Acquired counts the acquisitions after the fault.
func (a *afterwards) Acquired(engine.Acquisition) {
	if a.over.Load() && a.had.Add(1) == a.times {
		a.end()
	}
}

// Serve returns the address of a server that calls answer for each connection and then closes it. The server ends with
// the test.
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

// Get returns the server.
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
