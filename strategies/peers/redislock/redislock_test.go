package redislock_test

import (
	"maps"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/peers/redislock"
)

func init() { strategies.RegisterStrategy(redislock.Strategy()) }

func TestConformance(t *testing.T) {
	trial.Conform(t, "redislock:delay=5ms", "redislock:tuned=true", "redislock:delay=5ms,pipeline=true")
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "redislock", time.Minute)
	trial.Release(t, p.Acquire(t, "key")) // opens the connection, loads the scripts
	got := locktest.Calls(t, server.Client(t), func() { trial.Release(t, p.Acquire(t, "key")) })
	if want := map[string]int{"evalsha": 2, "msetnx": 1, "pexpire": 1, "mget": 1, "del": 1}; !maps.Equal(got, want) {
		t.Errorf("an acquire and release ran %v, want %v", got, want)
	}
}

// redislock gives up after a TTL; a Locker waits.
func TestWaitsBeyondTheTTL(t *testing.T) {
	const ttl = 50 * time.Millisecond
	server := redistest.Start(t)
	holder, waiter := trial.Start(t, server, "redislock", time.Minute), trial.Start(t, server, "redislock:delay=1ms", ttl)
	lease := holder.Acquire(t, "key")
	done := make(chan error)
	go func() {
		next, err := waiter.Locker.Acquire(t.Context(), "key")
		if err == nil {
			_ = next.Release(t.Context()) // it may have run out meanwhile
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a waiter gave up after its TTL: %v", err)
	case <-time.After(4 * ttl):
	}
	trial.Release(t, lease)
	if err := <-done; err != nil {
		t.Errorf("a waiter gave up: %v", err)
	}
}

func TestReportsALostServer(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "redislock", time.Minute)
	p.Acquire(t, "key")
	failed := make(chan error)
	go func() {
		_, err := p.Locker.Acquire(t.Context(), "key")
		failed <- err
	}()
	server.Kill()
	if err := <-failed; err == nil {
		t.Error("the lock was granted by a dead server")
	}
}
