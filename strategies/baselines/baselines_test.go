package baselines_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func init() { strategies.RegisterStrategy(baselines.Strategies()...) }

func TestConformance(t *testing.T) {
	for _, name := range []string{"noop", "local", "atomic"} {
		trial.Conform(t, name)
	}
}

func TestNoopClaimsAndExcludesNothing(t *testing.T) {
	if claims := baselines.Noop().Info.Claims; claims != (strategies.Claims{}) {
		t.Errorf("it claims %v", claims)
	}
	for range 2 { // the second while the first holds
		if _, err := (baselines.NoopLocker{}).Acquire(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
	}
	cycle := func() {
		lease, _ := strategies.Locker(baselines.NoopLocker{}).Acquire(context.Background(), "key")
		_ = lease.Release(context.Background())
	}
	if n := testing.AllocsPerRun(1000, cycle); n != 0 {
		t.Errorf("%v allocations for each acquire and release", n)
	}
}

func openLocal(t testing.TB, probe *strategies.Probe) *baselines.LocalLocker {
	t.Helper()
	locker, err := baselines.OpenLocal(strategies.Config{Probe: probe}, baselines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return locker
}

func TestLocalCountsOneAttemptAndOneWakeUp(t *testing.T) {
	probe := &strategies.Probe{}
	locker := openLocal(t, probe)
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := locker.Acquire(t.Context(), "key")
		done <- err
	}()
	poll.Until(t, "the waiter's attempt", func() bool { return probe.Counts().Attempts == 2 })
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, want := probe.Counts(), (strategies.ProbeCounts{Attempts: 2, Useful: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// Three processes with five clients each increment one counter. No increment may be lost. Each increment must cost one
// INCR, and acquire and release must send no command.
func TestAtomicIncrements(t *testing.T) {
	const processes, clients, turns = 3, 5, 20
	server := redistest.Start(t)
	outside := server.Client(t)
	var lockers []strategies.Locker
	for range processes {
		p := trial.Start(t, server, "atomic", time.Minute)
		p.Config.Nodes[0].Client.Ping(t.Context()) // it is connected
		lockers = append(lockers, p.Locker)
	}
	increment := func(locker strategies.Locker) error {
		lease, err := locker.Acquire(t.Context(), "key")
		if err != nil {
			return err
		}
		defer func() { _ = lease.Release(t.Context()) }()
		return locker.(strategies.Incrementer).Increment(t.Context(), "counter")
	}
	ran := locktest.Calls(t, outside, func() {
		var all sync.WaitGroup
		for i := range processes * clients {
			all.Go(func() {
				for range turns {
					if err := increment(lockers[i%processes]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
	const want = processes * clients * turns
	if n, err := outside.Get(t.Context(), "counter").Int(); n != want || err != nil {
		t.Errorf("the counter is %d after %d increments (%v)", n, want, err)
	}
	if ran["incr"] != want || ran["get"]+ran["set"]+ran["evalsha"] != 0 {
		t.Errorf("%v ran for %d increments", ran, want)
	}
	outside.Del(t.Context(), "counter")
	outside.RPush(t.Context(), "counter", "no number")
	if err := increment(lockers[0]); err == nil {
		t.Error("a list was incremented")
	}
}

func TestAtomicErrors(t *testing.T) {
	variant := trial.Variant(t, "atomic")
	if _, err := goredis.Open(variant, goredis.Config{}); err == nil {
		t.Error("it was opened without a node")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := trial.Start(t, redistest.Start(t), "atomic", time.Minute)
	if _, err := p.Locker.Acquire(ctx, "key"); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context acquire returned %v", err)
	}
}

func BenchmarkUncontended(b *testing.B) {
	for name, locker := range map[string]strategies.Locker{"noop": baselines.NoopLocker{}, "local": openLocal(b, nil)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lease, err := locker.Acquire(context.Background(), "key")
				if err != nil {
					b.Fatal(err)
				}
				if err := lease.Release(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
