package handoff_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// joinFor has somebody wait with a TTL of his own.
func (q *queue) joinFor(who string, p trial.Process, ttl time.Duration) {
	q.t.Helper()
	before, _ := handoff.WaitingFor(locker(p), "key", ttl)
	q.comeFor(who, p, ttl)
	poll.Until(q.t, "they wait", func() bool {
		n, queued := handoff.WaitingFor(locker(p), "key", ttl)
		return n == before+1 && queued
	})
}

// hours are for how long Redis keeps the lock, and the lease says it is valid.
func (q *queue) hours(held *handoff.Lease, want time.Duration) {
	q.t.Helper()
	left := q.server.PTTL(q.ctx, lock).Val()
	if left > want || left < want-20*time.Minute {
		q.t.Errorf("Redis keeps the lock for %v, want %v", left, want)
	}
	if valid := time.Until(held.ValidUntil()); valid > want || valid < want-20*time.Minute {
		q.t.Errorf("the lease is valid for %v, want %v", valid, want)
	}
}

// Everybody gets the TTL that he asked for, also one who waited and one who is passed
// the lock: it is passed on only to those of the same TTL, the others have their place at Redis.
func TestTTLOfACall(t *testing.T) {
	t.Parallel()
	const own, other = 8 * time.Hour, 2 * time.Hour
	for variant, order := range map[string]string{
		"handoff:linger=1h": "a1 a3 a2 a4 b1", "cohort": "a1 a3 a2 a4 b1", "handoff:linger=0s": "a1 a2 a3 b1 a4",
	} {
		server := redistest.Start(t)
		q := newQueue(t, server)
		a, b, c := trial.Start(t, server, variant, own), trial.Start(t, server, variant, other), trial.Start(t, server, variant, own)
		first, err := locker(c).TryAcquireFor(t.Context(), "key", other)
		if err != nil {
			t.Fatal(err)
		}
		held := first.(*handoff.Lease)
		q.hours(held, other)
		q.joinFor("a1", a, own)
		q.joinFor("a2", a, other)
		q.joinFor("a3", a, own)
		q.joinFor("b1", b, other)
		q.joinFor("a4", a, other)
		for who := range strings.FieldsSeq(order) {
			held = q.turns(held, who)
			if who == "a1" || who == "a3" {
				q.hours(held, own)
			} else {
				q.hours(held, other)
			}
		}
		trial.Release(t, held)
		q.nothingLeft(a, b, c)
	}
}

// A TTL that leaves no time for anything is refused, and Redis is not asked.
func TestTTLTooShort(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	for _, ttl := range []time.Duration{-time.Second, 0, 9 * time.Millisecond} {
		_, err := locker(p).AcquireFor(t.Context(), "key", ttl)
		_, tried := locker(p).TryAcquireFor(t.Context(), "key", ttl)
		if err == nil || tried == nil || !strings.Contains(err.Error(), "TTL must be at least 10ms") {
			t.Errorf("%v: %v and %v, want errors", ttl, err, tried)
		}
	}
	lease := acquire(t, p)
	before := lease.ValidUntil()
	for _, ttl := range []time.Duration{-time.Second, 0, 9 * time.Millisecond} {
		if err := lease.Extend(t.Context(), ttl); err == nil || !strings.Contains(err.Error(), "TTL must be at least 10ms") {
			t.Errorf("an extension by %v: %v, want an error", ttl, err)
		}
	}
	if lease.ValidUntil() != before || isLost(lease) {
		t.Error("an extension that was refused ended the lease")
	}
	trial.Release(t, lease)
	poll.Until(t, "nothing is looked after", func() bool { return handoff.Lines(locker(p)) == 0 })
	if n := server.Client(t).DBSize(t.Context()).Val(); n != 0 || handoff.Lines(locker(p)) != 0 {
		t.Errorf("%d keys and %d lines are left", n, handoff.Lines(locker(p)))
	}
}
