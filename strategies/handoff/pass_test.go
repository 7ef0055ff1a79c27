package handoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// pair is two processes, and a third who has the lock at first. In a wait a1, a2 and so
// on, in the order in which they came; in b, b1 and so on. The place of a comes first.
type pair struct {
	*queue
	first   *handoff.Lease
	h, a, b trial.Process
}

func newPair(t *testing.T, variant string, ttl time.Duration, inA, inB int) *pair {
	t.Helper()
	server := redistest.Start(t)
	p := &pair{
		queue: newQueue(t, server), h: trial.Start(t, server, variant, time.Hour),
		a: trial.Start(t, server, variant, ttl), b: trial.Start(t, server, variant, ttl),
	}
	p.first = acquire(t, p.h)
	for n := range inA {
		p.join(fmt.Sprint("a", n+1), p.a)
	}
	for n := range inB {
		p.join(fmt.Sprint("b", n+1), p.b)
	}
	return p
}

// done releases the last lease.
func (p *pair) done(last *handoff.Lease) {
	p.t.Helper()
	trial.Release(p.t, last)
	p.nothingLeft(p.h, p.a, p.b)
}

// Whoever waits in a process when the lease comes to it is passed it, in order. Who comes
// later waits for those of the other process.
func TestPassedToWhoWasThere(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff:linger=1h", "cohort"} {
		p := newPair(t, variant, time.Hour, 3, 3)
		held := p.turns(p.first, "a1")
		p.join("a4", p.a)
		held = p.turns(held, "a2 a3 b1")
		p.join("a5", p.a)
		p.join("b4", p.b)
		p.done(p.turns(held, "b2 b3 a4 a5 b4"))
	}
}

// Who has got a free lock passes it to those who came while it asked, and to no later ones.
func TestAFreeLockIsNotPassedToLaterOnes(t *testing.T) {
	t.Parallel()
	p := newPair(t, "cohort", time.Hour, 0, 0)
	p.join("h1", p.h)
	p.join("b1", p.b)
	p.join("h2", p.h)
	p.done(p.turns(p.first, "b1 h1 h2"))
}

// The turns of a lease are bounded by batch.
func TestPassedForABatch(t *testing.T) {
	t.Parallel()
	p := newPair(t, "cohort:batch=2", time.Hour, 5, 3)
	p.done(p.turns(p.first, "a1 a2 b1 b2 a3 a4 b3 a5"))
}

// A µs has 1024 tokens, so as many turns has a lease at most: their tokens follow each
// other, and the next lease has those of the next µs.
func TestMostTurns(t *testing.T) {
	t.Parallel()
	p := newPair(t, "cohort", time.Hour, 0, 0)
	const waiters = handoff.MostTurns + 2
	for n := range waiters {
		p.come(fmt.Sprint("a", n+1), p.a)
	}
	p.waiting(p.a, waiters)
	p.join("b1", p.b)
	held := p.first
	first := int64(0)
	for n := range handoff.MostTurns {
		trial.Release(t, held)
		s := p.any()
		if s.err != nil || s.who == "b1" {
			t.Fatalf("turn %d: %s got: %v", n, s.who, s.err)
		}
		held = s.lease
		if n == 0 {
			first = held.FencingToken()
		}
		if token := held.FencingToken(); token != first+int64(n) {
			t.Fatalf("turn %d of a lease from %d has token %d", n, first, token)
		}
	}
	held = p.turns(held, "b1")
	if token := held.FencingToken(); token != first+handoff.MostTurns {
		t.Errorf("the next lease has token %d, after one from %d", token, first)
	}
	for range 2 {
		trial.Release(t, held)
		held = p.any().lease
	}
	p.done(held)
}

// Linger bounds how long a lease goes round in a process.
func TestPassedForAsLongAsLinger(t *testing.T) {
	t.Parallel()
	const linger = 20 * time.Millisecond
	p := newPair(t, fmt.Sprint("handoff:linger=", linger), time.Hour, 2, 2)
	held := p.turns(p.first, "a1")
	time.Sleep(linger + time.Millisecond)
	held = p.turns(held, "b1")
	time.Sleep(linger + time.Millisecond)
	p.done(p.turns(held, "a2 b2"))
}

// A lease is passed while half of its TTL is left, and not more than one.
func TestPassedWithHalfATTL(t *testing.T) {
	t.Parallel()
	t.Run("too little", func(t *testing.T) {
		t.Parallel()
		trial.Calm(t, func(times int) string {
			ttl := 200 * time.Millisecond * time.Duration(times)
			p := newPair(t, "cohort", ttl, 2, 1)
			held := p.turns(p.first, "a1")
			time.Sleep(time.Until(held.ValidUntil()) - ttl/2 + ttl/20)
			if err := held.Release(t.Context()); err != nil {
				return err.Error()
			}
			next := p.any()
			if next.who != "b1" || next.err != nil { // its lease may have run out before it heard of it
				return fmt.Sprintf("%s was served when it was b1's turn: %v", next.who, next.err)
			}
			if err := next.lease.Release(t.Context()); err != nil {
				return err.Error()
			}
			_ = p.next("a2").Release(t.Context())
			return ""
		})
	})
	t.Run("too much", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, "cohort", time.Hour, 2, 1)
		held := p.turns(p.first, "a1")
		if err := held.Extend(t.Context(), 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		p.done(p.turns(held, "b1 a2"))
	})
	t.Run("extended", func(t *testing.T) { // for all who are to have it
		t.Parallel()
		p := newPair(t, "cohort", time.Hour, 2, 1)
		held := p.turns(p.first, "a1")
		if err := held.Extend(t.Context(), 40*time.Minute); err != nil {
			t.Fatal(err)
		}
		held = p.turns(held, "a2")
		if left := time.Until(held.ValidUntil()); left > 59*time.Minute {
			t.Errorf("Redis keeps it for as long as before an hour, and %v is said", left)
		}
		p.done(p.turns(held, "b1"))
	})
}

// A holder that never releases keeps its neighbours waiting until the lease is over; then
// they have their turn from Redis, and the stuck one is told.
func TestStuckHolder(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s", "cohort"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p := trial.Start(t, server, variant, 300*time.Millisecond)
			q := newQueue(t, server)
			stuck := acquire(t, p)
			q.come("first", p)
			q.come("second", p)
			s := q.any()
			if s.err != nil {
				t.Fatalf("%s got: %v", s.who, s.err)
			}
			if now := time.Now(); now.Before(stuck.ValidUntil()) {
				t.Errorf("it was served %v before the lease was over", stuck.ValidUntil().Sub(now))
			}
			if !isLost(stuck) {
				t.Error("the stuck holder was not told")
			}
			notHeld(t, stuck)
			_ = s.lease.Release(t.Context()) // it may have run out meanwhile
			_ = q.any().lease.Release(t.Context())
			q.nothingLeft(p)
		})
	}
}

// One that gets stuck in the middle keeps the rest for no longer than the lease.
func TestStuckInTheMiddle(t *testing.T) {
	t.Parallel()
	p := newPair(t, "cohort", 400*time.Millisecond, 3, 0)
	trial.Release(t, p.first)
	held := p.next("a1")
	_ = held.Release(t.Context())
	stuck := p.next("a2")
	held = p.next("a3")
	if now := time.Now(); now.Before(stuck.ValidUntil()) {
		t.Errorf("it was served %v before the lease was over", stuck.ValidUntil().Sub(now))
	}
	notHeld(t, stuck)
	_ = held.Release(t.Context())
	p.nothingLeft(p.h, p.a)
}
