package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// callFor is a call with a TTL of its own.
type callFor struct {
	name string
	do   func(locker strategies.Termed, ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error)
}

// callTTL checks that a call's TTL holds for its lease in place of the Locker's, whether it is
// longer or shorter, and that no watchdog renews the lease.
func callTTL(s *stage) {
	short, long, other := s.open(shortTTL), s.open(longTTL), s.open(longTTL)
	calls := []callFor{
		{"AcquireFor", strategies.Termed.AcquireFor},
		{"TryAcquireFor", strategies.Termed.TryAcquireFor},
	}
	var lasting []strategies.Lease
	for _, c := range calls {
		lasting = append(lasting, s.longer(short, c)...)
		s.refusesTTLs(long, c)
		s.runsOut(long, other, "short by "+c.name, c, shortTTL)
		s.runsOut(short, other, "not renewed by "+c.name, c, 2*shortTTL)
	}
	for _, c := range calls {
		if !s.held(other, c.name) { // no machine stands still for so long
			s.fatalf("a lease of %s for %v ran out with its Locker's TTL", c.name, longTTL)
		}
	}
	s.release(lasting...)
}

// waiterOf makes that call in the background.
func (s *stage) waiterOf(i *instance, key string, c callFor, ttl time.Duration) *waiter {
	termed, ok := strategies.As[strategies.Termed](i.lock)
	if !ok {
		s.notApplicable("its calls have no TTL of their own")
	}
	return s.waiterFor(i, key, func(ctx context.Context, key string) (strategies.Lease, error) {
		return c.do(termed, ctx, s.named(key), ttl)
	})
}

// fillFor takes all permits of a key with that call. A try that a busy machine made fail is repeated.
func (s *stage) fillFor(i *instance, key string, c callFor, ttl time.Duration) (leases []strategies.Lease) {
	for range s.info.Capacity {
		err := errors.New("no answer")
		if !s.eventually(func() bool {
			w := s.waiterOf(i, key, c, ttl)
			if w.within(s.patience) {
				err = w.err
			}
			if err == nil {
				leases = append(leases, w.lease)
			}
			return err == nil
		}) {
			s.brokenNow(granting, "%s for %v of a free lock: %v", c.name, ttl, err)
		}
	}
	return leases
}

// longer takes leases with a longer TTL than the Locker's.
func (s *stage) longer(i *instance, c callFor) []strategies.Lease {
	asked := time.Now()
	leases := s.fillFor(i, c.name, c, longTTL)
	last := leases[len(leases)-1]
	s.believable(i, last, longTTL)
	if timed, ok := strategies.As[strategies.Timed](last); ok {
		if valid := timed.ValidUntil().Sub(asked); valid < longTTL*9/10 { // less drift, of a quorum
			s.fatalf("%s for %v gave a lease that is valid for %v", c.name, longTTL, valid)
		}
	}
	return leases
}

// refusesTTLs asks for leases that would be over at once.
func (s *stage) refusesTTLs(i *instance, c callFor) {
	for _, ttl := range []time.Duration{-longTTL, 0, time.Millisecond - 1} {
		before := i.probe.Counts().Attempts
		w := s.waiterOf(i, "refused", c, ttl)
		switch {
		case !w.within(s.patience):
			s.fatalf("%s for %v goes on, want an error", c.name, ttl)
		case w.err == nil || w.lease != nil:
			s.fatalf("%s for %v was granted, want an error", c.name, ttl)
		case i.probe.Counts().Attempts > before:
			s.errorf("%s for %v asked for the lock before it was refused", c.name, ttl)
		}
	}
}

// runsOut takes leases that nobody releases, and expects another to get the lock after them.
func (s *stage) runsOut(i, other *instance, key string, c callFor, ttl time.Duration) {
	lease := s.fillFor(i, key, c, ttl)[0]
	next := s.waiterFor(other, key, other.Acquire)
	if !next.within(s.patience) {
		s.fatalf("a lease of %s for %v keeps the lock from others for %v", c.name, ttl, s.patience)
	}
	next.finish()
	if timed, ok := strategies.As[strategies.Timed](lease); ok && next.over.Before(timed.ValidUntil()) {
		s.brokenNow(valid, "another was granted the lock %v before a lease on it ceased to be valid",
			timed.ValidUntil().Sub(next.over))
	}
	s.release(next.lease)
	s.release(s.fill(other, key)...) // the other permits come back when a client looks
}
