package handoff_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// open is a Locker with a go-redis client at its default settings, which retries.
func open(t *testing.T, server *redistest.Server) *handoff.Locker {
	t.Helper()
	options := &redis.UniversalOptions{Addrs: []string{server.Addr}}
	client := redis.NewUniversalClient(options)
	locker, err := handoff.New(strategies.Config{
		Nodes:  []strategies.Node{{Client: client, Options: options}},
		Prefix: "trial:",
		TTL:    time.Minute,
	}, handoff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locker.Close(); err != nil {
			t.Error(err)
		}
		_ = client.Close()
	})
	return locker
}

// Releasing and queueing again is one script; whoever waited gets the lock between.
func TestRequeue(t *testing.T) {
	server := redistest.Start(t)
	a, b := open(t, server), open(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	first, err := a.AcquireBlock(ctx, "key", 100)
	if err != nil {
		t.Fatal(err)
	}
	from, n := first.Fences()
	if from != first.FencingToken() || n != 100 {
		t.Errorf("tokens %d and %d more, want 100 from %d", from, n, first.FencingToken())
	}
	q := newQueue(t, server)
	q.join(0, trial.Process{Locker: b})
	turn, err := first.Requeue(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	other := q.next(0)
	if fence(other) != from+n {
		t.Errorf("the next lease has token %d, want %d", fence(other), from+n)
	}
	if err := first.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release after Requeue returned %v", err)
	}
	trial.Release(t, other)
	second, err := turn.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, n := second.Fences(); second.FencingToken() != fence(other)+1 || n != 10 {
		t.Errorf("then came token %d with %d, want %d with 10", second.FencingToken(), n, fence(other)+1)
	}

	// Where nobody waits the turn comes at once.
	turn, err = second.Requeue(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	third, err := turn.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// A lost lease queues all the same; a cancelled turn leaves nothing.
	q.server.Del(ctx, list)
	turn, err = third.Requeue(ctx, 1)
	if !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("requeueing a lost lease returned %v", err)
	}
	fourth, err := turn.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	q.join(1, trial.Process{Locker: b})
	turn, err = fourth.Requeue(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := turn.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled turn returned %v", err)
	}
	trial.Release(t, q.next(1))
	if n := q.length(); n != 1 {
		t.Errorf("%d are left in the queue", n-1)
	}
}

// A reply that is lost leaves the caller in doubt; asking again settles it.
func TestReleaseWithoutAnAnswer(t *testing.T) {
	server := redistest.Start(t)
	locker := open(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := locker.Acquire(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	short, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	if err := lease.Release(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a release without an answer returned %v", err)
	}
	server.Resume()
	if err := lease.Release(ctx); err != nil {
		t.Errorf("released again, it returned %v", err)
	}
	if err := lease.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release of what was released returned %v", err)
	}
}
