package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Close ends all waits of the process with ErrClosed and removes its slots from the queue at Redis. A slot that stayed
// there could still get the lock, until Redis noticed that the process is gone. Holders can still release their leases.
func TestClose(t *testing.T) {
	onOne(t, slotKinds, func(t *testing.T, server *redistest.Server, variant string) {
		p := newPairOn(t, server, variant, time.Hour, 3, 1)
		p.join("h1", p.h)
		for _, process := range []trial.Process{p.h, p.a} {
			if err := process.Close(); err != nil {
				t.Error(err)
			}
		}
		for range 4 {
			if s := p.any(); s.who == "b1" || !errors.Is(s.err, strategies.ErrClosed) {
				t.Errorf("%s got: %v, when its process was closed", s.who, s.err)
			}
		}
		if n := p.length(); n != 1 {
			t.Errorf("%d slots are queued, want only the slot of the process that is not closed", n)
		}
		_, acquired := p.a.Locker.Acquire(t.Context(), "key")
		_, tried := locker(p.a).TryAcquire(t.Context(), "key")
		if !errors.Is(acquired, strategies.ErrClosed) || !errors.Is(tried, strategies.ErrClosed) {
			t.Errorf("after Close an acquire returned %v, and a try %v", acquired, tried)
		}
		held := p.turns(p.first, "b1")
		notHeld(t, p.first)
		trial.Release(t, held)
		p.nothingLeft(p.b)
	})
}

// If a command that is under way during Close gets the lock, Close releases the lock.
func TestCloseReleasesLateGrants(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	trial.Release(t, acquire(t, p))
	client := lookAt(t, server)
	client.Set(t.Context(), lock, handoff.OweLate(locker(p), "key"), time.Hour)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if owner := client.Get(t.Context(), lock).Val(); owner != "" {
		t.Errorf("%q has the lock, whose process is closed", owner)
	}
}

// Redis is silent, and the process gives up its subscription while it is being closed. Close must still end the
// connection of the subscription and return within patience, and all waiters must get ErrClosed.
func TestCloseWhileRedisIsSilent(t *testing.T) {
	each(t, both, closeWhileRedisIsAway)
}

func closeWhileRedisIsAway(t *testing.T, variant string) {
	server := redistest.Start(t)
	p := newPairOn(t, server, variant, time.Hour, 5, 0)
	poll.Until(t, "the process listens", func() bool { return handoff.Listener(locker(p.a)) != nil })
	server.Pause()
	closed := make(chan error, 1)
	go func() { closed <- p.a.Close() }()
	if !handoff.GiveUpListening(locker(p.a)) {
		t.Error("the process did not listen")
	}
	for range 5 {
		if s := p.any(); !errors.Is(s.err, strategies.ErrClosed) {
			t.Errorf("a waiter got %v", s.err)
		}
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("Close has not ended")
	}
	server.Resume()
	trial.Release(t, p.first)
}

// The queue key of one lock is not a list, so Redis refuses a release of this lock with a permanent error. The process
// must drop this release, and must not delay the releases of other locks.
func TestPendingReleaseThatRedisRefuses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	l, client := locker(p), lookAt(t, server)
	calls := locktest.Calls(t, client, func() {
		for _, sent := range []<-chan struct{}{
			handoff.Owe(l, "bad", func(queue string) { client.Set(t.Context(), queue, "no list", 0) }),
			handoff.Owe(l, "good", nil),
		} {
			select {
			case <-sent:
			case <-time.After(patience):
				t.Fatal("the release is still pending")
			}
		}
		poll.Until(t, "no release is pending", func() bool { return handoff.Quiet(l) })
	})
	if n := calls["evalsha"] + calls["eval"]; n > 4 {
		t.Errorf("two pending releases ran %d scripts", n)
	}
}

// A waiter gives up while Redis refuses writes. The process must repeat the release of the waiter's slot until Redis
// accepts it.
func TestPendingReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	p := newPair(t, "handoff", time.Hour, 1, 1)
	refused := func() (n int) {
		for line := range strings.Lines(p.server.Info(t.Context(), "errorstats").Val()) {
			_, _ = fmt.Sscanf(line, "errorstat_NOREPLICAS:count=%d", &n)
		}
		return n
	}
	p.do("CONFIG SET min-replicas-to-write 1")
	p.leave("a1")
	poll.Until(t, "the release was refused repeatedly", func() bool { return refused() >= 3 })
	if n := p.length(); n != 2 {
		t.Errorf("%d are queued at a server that takes no writes", n)
	}
	p.do("CONFIG SET min-replicas-to-write 0")
	poll.Until(t, "only the other waiter is queued", func() bool { return p.length() == 1 })
	p.done(p.turns(p.first, "b1"))
}

// If 3000 callers give up while Redis is paused, Redis may have granted a lock to each of them. All these locks are
// released when Redis runs again.
func TestStallLeavesNoLockTaken(t *testing.T) {
	t.Parallel()
	const callers = 3000
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	trial.Release(t, acquire(t, p)) // now the process is connected
	server.Pause()
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := p.Locker.Acquire(ctx, fmt.Sprint("key-", n)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an acquire of a server that stands still returned %v", err)
			}
		})
	}
	all.Wait()
	server.Resume()
	q.nothingLeft(p)
}

// If callers give up and new callers replace them, the process sends no command except its periodic checks, because the
// new callers take over the slots. This holds for any number of waiters.
func TestImpatientCallers(t *testing.T) {
	t.Parallel()
	const waiters = 200
	server := redistest.Start(t)
	h, p := attentive(t, server, "handoff:linger=0s"), attentive(t, server, "handoff:linger=0s")
	q := newQueue(t, server)
	q.insist = true // a busy machine keeps a server silent
	lease := acquire(t, h)
	for n := range waiters {
		q.come(fmt.Sprint("caller ", n), p)
	}
	q.waiting(p, waiters)
	began := time.Now()
	calls := locktest.Calls(t, q.server, func() {
		for n := range waiters - 1 {
			q.leave(fmt.Sprint("caller ", n))
			q.join(fmt.Sprint("caller ", n+waiters), p)
		}
	})
	delete(calls, "llen")
	looks := int(time.Since(began)/time.Second) + 1 // the keeper checks once a second
	if len(calls) > 2 || calls["evalsha"] > looks || calls["get"] > looks {
		t.Errorf("%d callers that gave up and returned cost %v", waiters-1, calls)
	}
	for n := range waiters - 10 { // no caller replaces these
		q.leave(fmt.Sprint("caller ", n+waiters-1))
	}
	q.drain(lease, 10) // the remaining waiters get their turns
	q.nothingLeft(h, p)
}

// When a waiter gives up, no script searches the whole queue, so giving up costs Redis no more in a long queue than in
// a short one.
func TestLeavingALongQueue(t *testing.T) {
	t.Parallel()
	const waiters, others = 200, 5000
	p := newPair(t, "handoff:linger=0s", time.Hour, 0, 0)
	ctx := t.Context()
	fill := func() {
		_, err := p.server.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for n := range others {
				pipe.RPush(ctx, list, entry("X", n, time.Hour))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.server.Append(ctx, lock, "+")
	fill()
	for n := range waiters {
		p.come(fmt.Sprint("caller ", n), p.a)
	}
	p.waiting(p.a, waiters)
	fill()
	calls := locktest.Calls(t, p.server, func() {
		for n := range waiters {
			p.cancel[fmt.Sprint("caller ", n)]()
		}
		for range waiters {
			if s := p.any(); s.err == nil {
				t.Errorf("%s was served", s.who)
			}
		}
		poll.Until(t, "no release is pending", func() bool { return handoff.Quiet(locker(p.a)) })
	})
	if calls["lrem"] > 0 {
		t.Errorf("the whole queue was searched %d times", calls["lrem"])
	}
	p.server.LTrim(ctx, list, others, others+waiters-1) // these are next, and their process handles their turns
	p.join("last", p.a)
	p.done(p.turns(p.first, "last"))
}
