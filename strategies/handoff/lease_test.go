package handoff_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Lost is closed when a lease is over, and not when it is released or passed on.
func TestLost(t *testing.T) {
	t.Parallel()
	t.Run("at its end", func(t *testing.T) {
		t.Parallel()
		p := trial.Start(t, redistest.Start(t), "handoff", 100*time.Millisecond)
		lease := acquire(t, p)
		poll.Until(t, "it is told", func() bool { return isLost(lease) })
		if time.Now().Before(lease.ValidUntil()) {
			t.Error("it was told before it was over")
		}
		notHeld(t, lease)
		if err := lease.Extend(t.Context(), time.Hour); !errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("the extension of a lease that is over returned %v", err)
		}
		lease = acquire(t, p)
		time.Sleep(time.Until(lease.ValidUntil()) + time.Millisecond)
		<-lease.Lost() // asked for when it is over
	})
	t.Run("when Redis has lost it", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		lease := acquire(t, trial.Start(t, server, "handoff", time.Hour))
		lost := lease.Lost()
		server.Client(t).Del(t.Context(), lock)
		if err := lease.Extend(t.Context(), time.Hour); !errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("the extension of a lease that is lost returned %v", err)
		}
		<-lost
		if !isLost(lease) {
			t.Error("asked again it is not lost")
		}
		notHeld(t, lease)
	})
	t.Run("not on release", func(t *testing.T) {
		t.Parallel()
		p := newPair(t, "cohort", time.Hour, 2, 0)
		first := p.turns(p.first, "a1")
		lost := []<-chan struct{}{p.first.Lost(), first.Lost()}
		second := p.turns(first, "a2") // a pass
		lost = append(lost, second.Lost())
		p.done(second)
		time.Sleep(2 * time.Millisecond)
		for n, lost := range append(lost, first.Lost(), second.Lost()) {
			select {
			case <-lost:
				t.Errorf("%d: a lease that was released is said to be lost", n)
			default:
			}
		}
		notHeld(t, first)
		if err := first.Extend(t.Context(), time.Hour); !errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("the extension of a lease that was passed on returned %v", err)
		}
		notHeld(t, second)
	})
}

// Extend moves the end of a lease, for its holder, for Lost and at Redis.
func TestExtend(t *testing.T) {
	t.Parallel()
	trial.Calm(t, func(times int) string {
		ttl := 150 * time.Millisecond * time.Duration(times)
		server := redistest.Start(t)
		p, other := trial.Start(t, server, "handoff", ttl), trial.Start(t, server, "handoff", time.Hour)
		lease := acquire(t, p)
		lost, first := lease.Lost(), lease.ValidUntil()
		if err := lease.Extend(t.Context(), time.Minute); err != nil {
			return err.Error()
		}
		if left := time.Until(lease.ValidUntil()); left > time.Minute || left < time.Minute*9/10 {
			return "it was extended by a minute and is valid for " + left.String()
		}
		time.Sleep(time.Until(first) + ttl/2)
		select {
		case <-lost:
			t.Error("an extended lease was lost at its first end")
		default:
		}
		if _, err := locker(other).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
			t.Errorf("while it is extended another's try returned %v", err)
		}
		return ""
	})
}

// A lease that ends earlier than Redis keeps it, because it was shortened or because an extension was
// not answered, is given up at Redis when it has run out. The next waits no longer than that.
func TestAShortenedLease(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	for name, test := range map[string]struct {
		ttl   time.Duration
		watch bool // the holder watches Lost
		end   func(*testing.T, *wire, *handoff.Lease)
	}{
		"shortened":              {time.Hour, false, func(t *testing.T, _ *wire, l *handoff.Lease) { extend(t, l, short) }},
		"shortened, and watched": {time.Hour, true, func(t *testing.T, _ *wire, l *handoff.Lease) { extend(t, l, short) }},
		"shortened, and then less so": {time.Hour, false, func(t *testing.T, _ *wire, l *handoff.Lease) {
			extend(t, l, time.Minute)
			extend(t, l, 2*time.Minute)
			extend(t, l, short)
		}},
		"extended without an answer": {2 * time.Second, false, func(t *testing.T, w *wire, l *handoff.Lease) {
			w.stall()
			defer w.flow()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := l.Extend(ctx, time.Hour); err == nil {
				t.Error("an extension without an answer succeeded")
			}
		}},
	} {
		for _, variant := range []string{"handoff", "cohort"} {
			t.Run(name+"/"+variant, func(t *testing.T) {
				t.Parallel()
				server, w := redistest.Start(t), new(wire)
				p, other := w.start(t, server, variant, test.ttl), trial.Start(t, server, variant, time.Hour)
				lease := acquire(t, p)
				q := newQueue(t, server)
				q.come("other", other)
				if test.watch {
					lease.Lost()
				}
				test.end(t, w, lease)
				next := q.next("other")
				if time.Now().Before(lease.ValidUntil()) {
					t.Error("another had it while it was valid")
				}
				if next.FencingToken() <= lease.FencingToken() {
					t.Errorf("token %d came after %d", next.FencingToken(), lease.FencingToken())
				}
				poll.Until(t, "its holder is told", func() bool { return isLost(lease) })
				notHeld(t, lease)
				trial.Release(t, next)
				q.nothingLeft(p, other)
			})
		}
	}
}

// A waiter of the holder's own process whose place Redis has just queued does not put off the end of a
// lease that Redis keeps for longer.
func TestAShortenedLeaseEndsWhileOthersQueue(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff:linger=0s", time.Hour)
	handoff.Attend(locker(p), time.Hour)
	q := newQueue(t, server)
	lease := acquire(t, p)
	extend(t, lease, time.Second)
	q.come("waiter", p)
	next := q.next("waiter")
	if time.Now().Before(lease.ValidUntil()) {
		t.Error("another had it while it was valid")
	}
	notHeld(t, lease)
	trial.Release(t, next)
	q.nothingLeft(p)
}

func extend(t *testing.T, lease *handoff.Lease, ttl time.Duration) {
	t.Helper()
	if err := lease.Extend(t.Context(), ttl); err != nil {
		t.Error(err)
	}
}

// Redis has lost the lease while it goes round: that is noticed at the first pass after 25
// ms, and whoever has it by then is told.
func TestFlushEndsPassing(t *testing.T) {
	t.Parallel()
	p := newPair(t, "cohort", time.Hour, 4, 0)
	held := p.turns(p.first, "a1")
	p.server.FlushAll(t.Context())
	other := acquire(t, p.b)
	time.Sleep(26 * time.Millisecond)
	trial.Release(t, held) // which nobody knows yet
	held = p.next("a2")
	poll.Until(t, "it is told that it is lost", func() bool { return isLost(held) })
	if n, _ := p.server.Exists(t.Context(), lock).Result(); n != 1 {
		t.Error("the other's lock is gone")
	}
	p.waiting(p.a, 2)
	if token := other.FencingToken(); token <= held.FencingToken() {
		t.Errorf("token %d came after %d", token, held.FencingToken())
	}
	p.last = other.FencingToken()
	notHeld(t, held)
	p.done(p.turns(other, "a3 a4"))
}

// A lock that is deleted under those who wait is theirs again.
func TestDeletedUnderWaiters(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "handoff:linger=0s"} {
		p := newPair(t, variant, time.Hour, 1, 1)
		p.server.FlushAll(t.Context())
		var last *served
		for range 2 {
			s := p.any()
			if s.err != nil {
				t.Fatal(s.err)
			}
			last = &s
			_ = last.lease.Release(t.Context())
		}
		notHeld(t, p.first)
		p.nothingLeft(p.a, p.b)
	}
}

// A server that was restarted without its data: those who wait queue again, and tokens
// grow.
func TestRestartedEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	h, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	first := acquire(t, h)
	q.last = first.FencingToken()
	q.join("one", p)
	q.join("two", p)
	q.join("three", p)
	server.Kill()
	server.Restart(t)
	lease := q.next("one")
	// On a connection that it finds broken a release is in doubt, and not told so.
	poll.Until(t, "the holder's process is back", func() bool { return locker(h).Prepare(t.Context(), nil) == nil })
	notHeld(t, first)
	trial.Release(t, q.turns(lease, "two three"))
	q.nothingLeft(h, p)
}

// A lease that nobody releases keeps no try of its own process from the lock once it has run out.
func TestATryAfterALeaseThatRanOut(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff", "cohort"} {
		p := trial.Start(t, redistest.Start(t), variant, 50*time.Millisecond)
		first := p.Acquire(t, "key")
		var second strategies.Lease
		poll.Until(t, variant+": the lock is had again", func() bool {
			lease, err := p.Locker.(strategies.Trier).TryAcquire(t.Context(), "key")
			if err != nil && !errors.Is(err, strategies.ErrHeld) {
				t.Fatal(err)
			}
			second = lease
			return err == nil
		})
		notHeld(t, first)
		trial.Release(t, second)
	}
}
