package atomic_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/atomic"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func init() { strategies.RegisterStrategy(atomic.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "atomic") }

// No update is lost, and each costs one command: none to get in and out.
func TestIncrements(t *testing.T) {
	const processes, clients, turns = 3, 5, 20
	server := redistest.Start(t)
	outside := server.Client(t)
	var lockers []*atomic.Locker
	for range processes {
		config := trial.Config(t, server)
		config.Nodes[0].Client.Ping(t.Context()) // it is connected
		locker, err := atomic.Open(config)
		if err != nil {
			t.Fatal(err)
		}
		lockers = append(lockers, locker)
	}
	ran := locktest.Calls(t, outside, func() {
		var all sync.WaitGroup
		for _, locker := range lockers {
			for range clients {
				all.Go(func() {
					for range turns {
						lease, err := locker.Acquire(t.Context(), "key")
						if err != nil {
							t.Errorf("acquire: %v", err)
							return
						}
						if err := errors.Join(locker.Increment(t.Context(), "counter"), lease.Release(t.Context())); err != nil {
							t.Errorf("increment: %v", err)
						}
					}
				})
			}
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
}

func TestErrors(t *testing.T) {
	if _, err := atomic.Open(goredis.Config{}); err == nil {
		t.Error("it was opened without a node")
	}
	server := redistest.Start(t)
	locker, err := atomic.Open(trial.Config(t, server))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := locker.Acquire(ctx, "key"); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context acquire returned %v", err)
	}
	server.Client(t).RPush(t.Context(), "counter", "no number")
	if err := locker.Increment(t.Context(), "counter"); err == nil {
		t.Error("a list was incremented")
	}
}
