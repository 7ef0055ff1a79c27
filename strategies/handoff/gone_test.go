package handoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// A dead holder's lock goes to who waits when its TTL is over, without polling.
func TestDeadHolder(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		server := redistest.Start(t)
		dead, a, b := trial.Start(t, server, variant, 300*time.Millisecond), trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
		q := newQueue(t, server)
		lease := acquire(t, dead)
		q.join("a1", a)
		q.join("b1", b)
		q.join("a2", a)
		calls := locktest.Calls(t, q.server, func() {
			trial.Release(t, q.next("a1")) // whoever of them has looked
		})
		if n := calls["lpos"]; n > 4 {
			t.Errorf("%d looks until one dead holder's lock was free", n)
		}
		for range 2 {
			s := q.any()
			if s.err != nil {
				t.Fatal(s.err)
			}
			trial.Release(t, s.lease)
		}
		notHeld(t, lease)
		q.nothingLeft(a, b)
	}
}

// Places of processes that do not listen any more are passed over in the script that meets
// them; when there are more than one script looks at, who waits sees to the rest.
func TestGoneProcessesArePassedOver(t *testing.T) {
	t.Parallel()
	for _, gone := range []int{5, 63, 200} {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			h, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
			q := newQueue(t, server)
			lease := acquire(t, h)
			q.server.Append(t.Context(), lock, "+")
			for n := range gone {
				q.server.RPush(t.Context(), list, entry("X", n, time.Hour))
			}
			q.join("waiter", p)
			calls := locktest.Calls(t, q.server, func() {
				trial.Release(t, lease)
				lease = q.next("waiter")
			})
			if calls["lpop"] != gone+1 {
				t.Errorf("%d were passed over", calls["lpop"]-1)
			}
			if gone < 64 && calls["spublish"] != gone+1 {
				t.Errorf("%d messages", calls["spublish"])
			}
			trial.Release(t, lease)
			q.nothingLeft(h, p)
		})
	}
}

// A process that listens and does nothing, as one that is stopped, costs one TTL, once, for
// all its places.
func TestStoppedProcessCostsOneTTL(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Millisecond
	server := redistest.Start(t)
	h, p := trial.Start(t, server, "handoff:linger=0s", time.Hour), trial.Start(t, server, "handoff:linger=0s", time.Hour)
	q := newQueue(t, server)
	lease := acquire(t, h)
	stopped := q.server.SSubscribe(t.Context(), "trial:handoff:"+process("S"))
	defer func() { _ = stopped.Close() }()
	if _, err := stopped.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	q.server.Append(t.Context(), lock, "+")
	for n := range 5 {
		q.server.RPush(t.Context(), list, entry("S", n, ttl))
	}
	q.join("one", p)
	q.join("two", p)
	calls := locktest.Calls(t, q.server, func() {
		trial.Release(t, lease)
		lease = q.next("one")
	})
	if n := calls["spublish"]; n != 1 {
		t.Errorf("%d turns went to a process that is stopped, want one", n)
	}
	trial.Release(t, q.turns(lease, "two"))
	q.nothingLeft(h, p)
}

// A turn of a place that the process does not know goes on to the next.
func TestUnknownTurnIsPassedOn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	h, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := acquire(t, h)
	q.join("waiter", p)
	q.server.LPush(t.Context(), list, handoff.ID(locker(p), "key")+" 3600000")
	trial.Release(t, q.turns(lease, "waiter"))
	q.nothingLeft(h, p)
}

// Whoever waits keeps his place over breaks of the connections on which processes are
// told.
func TestPlacesOutliveBreaks(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		p := newPair(t, variant, time.Hour, 2, 2)
		for range 3 {
			ofA, ofB := handoff.Listener(locker(p.a)), handoff.Listener(locker(p.b))
			if err := p.server.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
				t.Fatal(err)
			}
			poll.Until(t, "both listen again, by connections of their own", func() bool {
				a, b := handoff.Listener(locker(p.a)), handoff.Listener(locker(p.b))
				return a != nil && b != nil && a != ofA && b != ofB
			})
		}
		p.done(p.turns(p.first, "a1 a2 b1 b2"))
	}
}

// A turn that a process was not told of, since its connection was broken, comes back to it.
func TestTurnMissedInABreak(t *testing.T) {
	t.Parallel()
	p := newPair(t, "handoff", time.Hour, 1, 1)
	if err := p.server.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	trial.Release(t, p.first) // perhaps nobody hears
	for range 2 {
		s := p.any()
		if s.err != nil {
			t.Fatal(s.err)
		}
		trial.Release(t, s.lease)
	}
	p.nothingLeft(p.h, p.a, p.b)
}

// A server that no longer lets a script publish loses nobody: those who wait find the lock
// free by themselves, in their order.
func TestForbiddenPublishLosesNobody(t *testing.T) {
	t.Parallel()
	p := newPair(t, "handoff", time.Hour, 2, 0)
	if err := p.server.Do(t.Context(), "ACL", "SETUSER", "default", "-spublish").Err(); err != nil {
		t.Fatal(err)
	}
	trial.Release(t, p.turns(p.first, "a1 a2"))
	p.nothingLeft(p.a)
}

// Nothing is kept at Redis while nobody waits; the queue of those who all die is, for ten
// minutes.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		p := newPair(t, variant, time.Minute, 1, 1)
		ttl := func(key string) time.Duration { return p.server.PTTL(t.Context(), key).Val() }
		if left := ttl(list); left < 9*time.Minute || left > 10*time.Minute {
			t.Errorf("the queue is kept for %v", left)
		}
		keys := p.server.Keys(t.Context(), "*").Val()
		if len(keys) != 2 {
			t.Errorf("keys %q while one has the lock and others wait", keys)
		}
		held := p.turns(p.first, "a1")
		if left := ttl(lock); left < 50*time.Second || left > time.Minute {
			t.Errorf("the lock of a dead holder is kept for %v", left)
		}
		p.server.PExpire(t.Context(), list, time.Minute) // who waits says so again when it looks
		poll.Until(t, "the queue is kept again", func() bool { return ttl(list) > 9*time.Minute })
		p.done(p.turns(held, "b1"))
	}
}

// Who queues, and is told that it is another's turn of his process, stands in the queue: he
// is looked after when the queue is lost.
func TestToldOfAnothersTurn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	q := newQueue(t, server)
	h, a := trial.Start(t, server, "handoff:linger=0s", time.Hour), trial.Start(t, server, "handoff:linger=0s", time.Hour)
	gone := acquire(t, h)
	q.join("a1", a)
	if err := q.server.Del(t.Context(), lock).Err(); err != nil { // the lock is free, and the queue is there
		t.Fatal(err)
	}
	q.come("a2", a)
	held := q.next("a1")
	poll.Until(t, "a2 stands in the queue", func() bool { return q.length() == 1 })
	for _, command := range [][]any{{"del", list}, {"client", "kill", "type", "pubsub"}} {
		if err := q.server.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	trial.Release(t, held)
	trial.Release(t, q.next("a2"))
	_ = gone.Release(t.Context())
	q.nothingLeft(h, a)
}
