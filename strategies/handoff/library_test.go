package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	if fence(other) < from+n {
		t.Errorf("the next lease has token %d, want %d or a later one", fence(other), from+n)
	}
	if err := first.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release after Requeue returned %v", err)
	}
	trial.Release(t, other)
	second, err := turn.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, n := second.Fences(); second.FencingToken() <= fence(other) || n != 10 {
		t.Errorf("then came token %d with %d, after %d, want 10", second.FencingToken(), n, fence(other))
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

// So it does with Requeue, which leaves nobody in the queue.
func TestRequeueWithoutAnAnswer(t *testing.T) {
	server := redistest.Start(t)
	locker := open(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := locker.AcquireBlock(ctx, "key", 1)
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	short, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	context.AfterFunc(short, func() {
		time.Sleep(50 * time.Millisecond)
		server.Resume()
	})
	if _, err := lease.Requeue(short, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a Requeue without an answer returned %v", err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Errorf("released then, it returned %v", err)
	}
	q := newQueue(t, server)
	trial.Eventually(t, "nobody is queued", func() bool { return q.length() == 1 })
	trial.Release(t, trial.Process{Locker: locker}.Acquire(t, "key"))
}

// A reply that is lost leaves the caller in doubt; asking again settles it.
func TestReleaseWithoutAnAnswer(t *testing.T) {
	server := redistest.Start(t)
	locker, other := open(t, server), open(t, server)
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
	// Who was granted the lock has released it meanwhile, so that Redis does not remember.
	trial.Release(t, trial.Process{Locker: other}.Acquire(t, "key"))
	if err := lease.Release(ctx); err != nil {
		t.Errorf("released again, it returned %v", err)
	}
	if err := lease.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release of what was released returned %v", err)
	}
}

// Tokens are counted on from the last where Redis's clock has been set back.
func TestTokensDoNotFollowTheClockBack(t *testing.T) {
	const later, count = 1 << 31, 1 << 28 // the last token, after 2038
	server := redistest.Start(t)
	a, b := open(t, server), open(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q := newQueue(t, server)
	q.server.RPush(ctx, list, fmt.Sprintf("- %d %d 1 0 -", later, count))
	var next int64
	for range 3 {
		lease, err := a.AcquireBlock(ctx, "key", 100)
		if err != nil {
			t.Fatal(err)
		}
		from, n := lease.Fences()
		if from <= 0 || next > 0 && from != next || n != 100 {
			t.Errorf("%d tokens from %d, want 100 from %d", n, from, next)
		}
		next = from + 100
		q.join(0, trial.Process{Locker: b})
		trial.Release(t, lease)
		granted := q.next(0)
		if fence(granted) != next {
			t.Errorf("a grant has token %d, want %d", fence(granted), next)
		}
		next++
		trial.Release(t, granted)
	}
	if state := q.server.LIndex(ctx, list, 0).Val(); !strings.HasPrefix(state, fmt.Sprintf("- %d ", later)) {
		t.Errorf("the state is %q, its epoch should be %d", state, later)
	}
}

// An extension without an answer may have shortened the lease, and cannot be relied on
// to have lengthened it. A lease says whether its connection has broken since.
func TestExtendWithoutAnAnswer(t *testing.T) {
	server := redistest.Start(t)
	locker := open(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := locker.AcquireBlock(ctx, "key", 1)
	if err != nil {
		t.Fatal(err)
	}
	if !lease.Unbroken() {
		t.Error("a fresh lease's connection is said to be broken")
	}
	before := lease.ValidUntil()
	server.Pause()
	for _, ttl := range []time.Duration{time.Hour, 30 * time.Second} {
		short, end := context.WithTimeout(ctx, 20*time.Millisecond)
		asked := time.Now()
		if err := lease.Extend(short, ttl); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an extension without an answer returned %v", err)
		}
		end()
		if until := lease.ValidUntil(); ttl == time.Hour && !until.Equal(before) || ttl != time.Hour && until.Sub(asked) > ttl {
			t.Errorf("after an extension by %v without an answer it is valid for %v", ttl, until.Sub(asked))
		}
	}
	server.Resume()
	if err := server.Client(t).ClientKillByFilter(ctx, "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	trial.Eventually(t, "the break is noticed", func() bool { return !lease.Unbroken() })
	if err := lease.Extend(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if !lease.Unbroken() {
		t.Error("an extension on the new connection did not confirm the lease")
	}
	trial.Release(t, lease)
}

// A busy lock whose waiters are queued by pushes and by Requeue is not forgotten as an
// idle one.
func TestABusyLockIsKept(t *testing.T) {
	server := redistest.Start(t)
	a, b := open(t, server), open(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := a.AcquireBlock(ctx, "key", 1)
	if err != nil {
		t.Fatal(err)
	}
	q := newQueue(t, server)
	q.join(0, trial.Process{Locker: b})
	left := func() time.Duration { return q.server.PTTL(ctx, list).Val() }
	q.server.PExpire(ctx, list, time.Minute)
	if left() > time.Minute {
		t.Fatal("the test could not shorten the lock's life")
	}
	// The keeper may see to it at once.
	turn, err := lease.Requeue(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	trial.Eventually(t, "the lock is kept for longer", func() bool { return left() > 10*time.Minute })
	trial.Release(t, q.next(0))
	if lease, err = turn.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	trial.Release(t, lease)
}
