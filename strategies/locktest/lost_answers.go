package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/network"
	"github.com/lockbench/lockbench/strategies"
)

// lostAnswers loses the answer to each command of an acquire, a release and an extension
// after the server has run the command.
func lostAnswers(s *stage) {
	s.expiring = true
	holder, third := s.open(longTTL), s.open(longTTL)
	var short *instance
	s.awake(2*shortTTL, func(ttl time.Duration) {
		short = s.open(ttl)
		s.release(s.acquire(short, "key")) // this opens its connections
		for step := range steps {
			if !s.acquireUnanswered(short, third, step, ttl) {
				break
			}
		}
	})
	s.release(s.acquire(holder, "key"))
	for _, lose := range []func(step int) bool{
		func(step int) bool { return s.acquireHeldUnanswered(short, holder, step) },
		func(step int) bool { return s.releaseUnanswered(holder, third, step) },
		func(step int) bool { return s.extendUnanswered(holder, third, step) },
	} {
		for step := range steps {
			if !lose(step) {
				break
			}
		}
	}
}

// acquireUnanswered asks for a free lock. Like the functions below, it says whether an answer
// was lost.
func (s *stage) acquireUnanswered(i, third *instance, step int, ttl time.Duration) bool {
	gate := i.wire.Hold(network.LostAnswer, step)
	asked := time.Now()
	w := s.waiterFor(i, "key", i.Acquire)
	caught := w.meets(gate)
	gate.Open()
	w.returned("an acquire whose answer was lost")
	if w.err == nil {
		until := validUntil(w.lease, asked, ttl)
		now := time.Now()
		if got := s.asked(third, "key"); got != nil {
			if s.info.Capacity == 1 && time.Now().Before(until) {
				s.broken(exclusive,
					"an acquire whose answer was lost returned a lease %v ago, and another got the lock",
					now.Sub(w.over))
			}
			s.release(got)
		}
		_ = s.again(w.lease) // it may have run out
	}
	if !s.eventually(func() bool { return s.free(third, "key") }) {
		s.fatalf("an acquire's answer number %d was lost, and its lock is not free", step+1)
	}
	s.release(s.fill(third, "key")...)
	return caught
}

// acquireHeldUnanswered asks for a lock that another holds.
func (s *stage) acquireHeldUnanswered(i, holder *instance, step int) bool {
	held := s.fill(holder, "key")
	gate := i.wire.Hold(network.LostAnswer, step)
	w := s.waiterFor(i, "key", i.Acquire)
	caught := false
	for range 10 { // a waiter may never ask again
		if caught = gate.Catches(soon / 10); caught || w.isOver() {
			break
		}
	}
	gate.Open()
	if caught {
		w.quiet()
	}
	w.cancel()
	w.returned("an acquire that was cancelled after its answer was lost")
	if w.err == nil {
		s.brokenNow(exclusive, "an answer to an acquire was lost, and it returned a lease while another held the lock")
	}
	s.release(held...)
	return caught
}

// releaseUnanswered lets another client acquire before the holder learns that no answer
// comes: what the holder does then must not take the lock from that client.
func (s *stage) releaseUnanswered(holder, third *instance, step int) bool {
	leases := s.fill(holder, "key")
	gate := holder.wire.Hold(network.LostAnswer, step)
	w := s.background(holder, "key", leases[0].Release)
	caught := w.meets(gate)
	var next strategies.Lease
	if caught {
		next = s.asked(third, "key")
	}
	gate.Open()
	w.returned("a release whose answer was lost")
	if w.err != nil && !errors.Is(w.err, strategies.ErrNotHeld) {
		if err := s.again(leases[0]); err != nil && !errors.Is(err, strategies.ErrNotHeld) {
			s.fatalf("a release's answer was lost, and a second release returned %q", err)
		}
	}
	if next != nil {
		if !s.held(third, "key") {
			s.fatalf("a release whose answer was lost freed the lock of the next holder")
		}
		if err := s.again(next); err != nil {
			s.fatalf("a release's answer was lost, and that of the next holder returned %q", err)
		}
	}
	s.release(leases[1:]...)
	if !s.eventually(func() bool { return s.free(third, "key") }) {
		s.fatalf("a release's answer number %d was lost, and the lock is not free", step+1)
	}
	return caught
}

// extendUnanswered extends a lease that is valid without the extension too.
func (s *stage) extendUnanswered(holder, third *instance, step int) bool {
	leases := s.fill(holder, "key")
	defer s.release(leases[1:]...)
	extender, ok := strategies.As[strategies.Extender](leases[0])
	if !ok {
		s.release(leases[0])
		return false
	}
	gate := holder.wire.Hold(network.LostAnswer, step)
	w := s.background(holder, "key", func(ctx context.Context) error { return extender.Extend(ctx, longTTL) })
	caught := w.meets(gate)
	gate.Open()
	w.returned("an extension whose answer was lost")
	if errors.Is(w.err, strategies.ErrNotHeld) {
		s.errorf("an extension's answer was lost, and it returned ErrNotHeld of a lease that is valid")
	}
	if !s.held(third, "key") {
		s.fatalf("an extension's answer was lost, and another got the lock")
	}
	if err := s.again(leases[0]); err != nil {
		s.fatalf("an extension's answer was lost, and the release returned %q", err)
	}
	return caught
}
