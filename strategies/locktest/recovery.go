package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// die ends an instance as the death of its process would: its leases stay.
func (s *stage) die(i *instance) {
	if err := i.Close(); err != nil {
		s.fatalf("close: %v", err)
	}
}

// deadHolder checks that a waiter gets a dead holder's lock.
func deadHolder(s *stage) {
	dead, alive := s.open(shortTTL), s.open(longTTL)
	s.fill(dead, "key")
	w := s.waiter(alive, "key")
	w.settle() // on a busy machine the lease may have run out by now
	s.die(dead)
	if !w.within(s.patience) {
		s.fatalf("a holder with a TTL of %v has died, and %v later its lock is not free", shortTTL, s.patience)
	}
	w.finish()
	s.release(s.fill(alive, "key")...) // the other permits come back too
}

// lateRelease checks that a client that has lost a lease can neither free nor extend the next
// holder's.
func lateRelease(s *stage) {
	dead, alive, third := s.open(shortTTL), s.open(longTTL), s.open(longTTL)
	free, lease := s.fill(dead, "another")[0], s.fill(dead, "key")[0]
	if s.info.Claims.Watchdog { // without one they run out by themselves
		s.die(dead)
		if s.ownConnections(dead) {
			s.notTried("its leases run out when it is closed, and then it has no connection to release them on: use " +
				"the Config's clients or Options")
		}
	}
	// Either lease may run out first: one may have been renewed once more than the other.
	if !s.eventually(func() bool { return !s.held(third, "key") && !s.held(third, "another") }) {
		s.brokenNow(recovering, "a holder with a TTL of %v has died, and %v later its lock is not free", shortTTL,
			s.patience)
	}
	s.notHeld("the release of a lease that ran out", free)
	next := s.fill(alive, "key")
	s.full(third, "key")
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	if extender, ok := strategies.As[strategies.Extender](lease); ok {
		if err := extender.Extend(ctx, longTTL); !errors.Is(err, strategies.ErrNotHeld) {
			s.errorf("extending a lost lease returned %v, want ErrNotHeld", err)
		}
	}
	s.notHeld("the release of a lost lease", lease)
	if !s.held(third, "key") {
		s.fatalf("a late release freed the next holder's lock")
	}
	s.release(next...)
}

// extend checks that an extended lease outlives its first TTL.
func extend(s *stage) {
	other := s.open(longTTL)
	s.calmly(2*shortTTL, func(ttl time.Duration) (fault string) {
		i := s.open(ttl)
		lease := s.acquire(i, "key")
		extender, ok := strategies.As[strategies.Extender](lease)
		if !ok {
			s.release(lease)
			s.notApplicable("its leases cannot be extended")
		}
		leases := []strategies.Lease{lease}
		ctx, cancel := context.WithTimeout(context.Background(), s.patience)
		defer cancel()
		if err := extender.Extend(ctx, longTTL); err != nil { // too late, if the machine stood still
			return cmp.Or(fmt.Sprintf("extend: %v", err), s.releaseAll(leases))
		}
		s.believable(i, lease, longTTL)
		if timed, ok := strategies.As[strategies.Timed](lease); ok && time.Until(timed.ValidUntil()) < longTTL/2 {
			s.fatalf("after extending by %v it is valid for %v", longTTL, time.Until(timed.ValidUntil()))
		}
		time.Sleep(ttl * 4 / 3)
		leases = append(leases, s.take(other, "key", s.info.Capacity-1)...)
		if !s.held(other, "key") { // no machine stands still for so long
			s.fatalf("an extended lease ran out with its first TTL")
		}
		s.release(leases...)
		return ""
	})
}

// validity checks that a lease claims to be valid no longer than its TTL from the moment
// before it was asked for, and that no other client gets the lock before that end.
func validity(s *stage) {
	alive := s.open(longTTL)
	for range 4 {
		lease := s.acquire(alive, "key")
		s.believable(alive, lease, longTTL)
		s.release(lease)
	}
	const enough = 2 // one alone may look right by chance
	for attempt, right, ttl := 1, 0, shortTTL; ; attempt++ {
		late := s.outlived(alive, ttl)
		if late < ttl/5 {
			if right++; right == enough {
				return
			}
			continue
		}
		if ttl *= 2; attempt == attempts {
			s.notJudged("a waiter gets the lock of one who died as much as %v after its TTL of %v: it may have been "+
				"free before", late, ttl/2)
		}
		s.Logf("a waiter got the lock %v after a TTL of %v: once more", late, ttl/2)
	}
}

// outlived returns how long after the end of a dead holder's validity another client got the
// lock.
func (s *stage) outlived(alive *instance, ttl time.Duration) time.Duration {
	dead := s.open(ttl)
	timed, ok := strategies.As[strategies.Timed](s.fill(dead, "key")[0])
	if !ok {
		s.notApplicable("its leases do not say until when they are valid")
	}
	s.die(dead)
	next := s.waiterFor(alive, "key", alive.Acquire)
	if !next.within(s.patience) {
		s.brokenNow(recovering, "a holder with a TTL of %v has died, and %v later its lock is not free", ttl,
			s.patience)
	}
	next.finish()
	late := next.over.Sub(timed.ValidUntil())
	if late < 0 {
		s.fatalf("another was granted the lock %v before a lease on it ceased to be valid", -late)
	}
	s.release(next.lease)
	s.release(s.fill(alive, "key")...) // the other permits come back when a client looks
	return late
}

// believable compares the end of a lease's validity with the time when the last command was
// sent, where both can be seen: the TTL began then, or before.
func (s *stage) believable(i *instance, lease strategies.Lease, ttl time.Duration) {
	timed, ok := strategies.As[strategies.Timed](lease)
	if !ok {
		return
	}
	until, sent := timed.ValidUntil(), i.wire.LastWrite()
	if over := until.Sub(sent.Add(ttl)); over > 0 && !sent.IsZero() {
		s.brokenNow(valid,
			"a lease of %v is said to be valid for longer than that from when its last command was sent, by %v", ttl,
			over)
	}
}
