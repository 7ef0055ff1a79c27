package redsync_test

import (
	"maps"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/peers/redsync"
)

func init() { strategies.RegisterStrategy(redsync.Strategy()) }

func TestConformance(t *testing.T) {
	trial.Conform(t, "redsync:delay=5ms", "redsync:tuned=true", "redsync:delay=5ms,pipeline=true")
}

func open(t *testing.T, server *redistest.Server, name string) strategies.Locker {
	t.Helper()
	locker, err := goredis.Open(trial.Variant(t, name), trial.Config(t, server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	return locker
}

func acquire(t *testing.T, locker strategies.Locker) strategies.Lease {
	t.Helper()
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	locker := open(t, server, "redsync")
	if err := acquire(t, locker).Release(t.Context()); err != nil { // opens the connection, loads the script
		t.Fatal(err)
	}
	got := locktest.Calls(t, server.Client(t), func() {
		if err := acquire(t, locker).Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if want := map[string]int{"set": 1, "evalsha": 1, "get": 1, "del": 1}; !maps.Equal(got, want) {
		t.Errorf("an acquire and release ran %v, want %v", got, want)
	}
}

// redsync fails after 32 tries; a Locker waits. Every failed try costs an EVALSHA.
func TestWaitsBeyondTheRetryLimit(t *testing.T) {
	server := redistest.Start(t)
	locker := open(t, server, "redsync:delay=1ms")
	lease := acquire(t, locker)
	ran := locktest.Calls(t, server.Client(t), func() {
		done := make(chan error)
		go func() {
			_, err := locker.Acquire(t.Context(), "key")
			done <- err
		}()
		outside, tries := server.Client(t), 0
		poll.Until(t, "a hundred tries", func() bool {
			tries += locktest.Calls(t, outside, func() { time.Sleep(20 * time.Millisecond) })["set"]
			return tries >= 100
		})
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Errorf("a waiter gave up: %v", err)
		}
	})
	if ran["set"] <= 32 || ran["evalsha"] != ran["set"] {
		t.Errorf("%d SETs and %d EVALSHAs: want more than 32 tries, and one EVALSHA for each that failed and for the release", ran["set"], ran["evalsha"])
	}
}

// redsync tries on for minutes when its only node is gone; nobody would know.
func TestReportsALostServer(t *testing.T) {
	server := redistest.Start(t)
	node, dials := trial.CountDials(t, server)
	config := trial.Config(t, server)
	config.Nodes = []goredis.Node{node}
	locker, err := goredis.Open(trial.Variant(t, "redsync"), config)
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, locker)
	failed := make(chan error)
	go func() {
		_, err := locker.Acquire(t.Context(), "key")
		failed <- err
	}()
	server.Kill()
	before := dials.Load()
	if err := <-failed; err == nil {
		t.Error("the lock was granted by a dead server")
	}
	// One of a try, one of taking it back.
	if n := dials.Load() - before; n > 4 {
		t.Errorf("it dialled a dead server %d times before it said so", n)
	}
}

// A minority may be down.
func TestWaitsWithoutAMinority(t *testing.T) {
	config := goredis.Config{Prefix: "trial:", TTL: time.Minute}
	var all []*redistest.Server
	for range 3 {
		server := redistest.Start(t)
		all = append(all, server)
		config.Nodes = append(config.Nodes, server.Node(t))
	}
	locker, err := goredis.Open(trial.Variant(t, "redsync:delay=5ms"), config)
	if err != nil {
		t.Fatal(err)
	}
	all[0].Kill()
	lease := acquire(t, locker)
	done := make(chan error)
	go func() {
		next, err := locker.Acquire(t.Context(), "key")
		if err == nil {
			err = next.Release(t.Context())
		}
		done <- err
	}()
	outside := all[1].Client(t)
	poll.Until(t, "a failed try", func() bool {
		return locktest.Calls(t, outside, func() { time.Sleep(20 * time.Millisecond) })["set"] > 2
	})
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a waiter gave up although two nodes of three live: %v", err)
	}
}
