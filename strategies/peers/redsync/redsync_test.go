package redsync_test

import (
	"maps"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func TestConformance(t *testing.T) { trial.Conform(t, "redsync:delay=5ms") }

func open(t *testing.T, server *redistest.Server, name string) strategies.Locker {
	t.Helper()
	locker, err := trial.Variant(t, name).Open(trial.Config(t, server))
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
		trial.Eventually(t, "a hundred tries", func() bool {
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
