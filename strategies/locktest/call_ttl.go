package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// callTTL checks that a call's TTL holds for its lease in place of the Locker's.
func callTTL(s *stage) {
	other := s.open(longTTL)
	s.outlastsTheLockers(other)
	s.refusesTTLs(other)
	s.runsOutBeforeTheLockers(other)
	if s.info.Claims.Watchdog {
		s.awake(3*shortTTL, func(ttl time.Duration) { s.isNotRenewed(other, ttl) })
	}
}

// callFor is a call with a TTL of its own.
type callFor struct {
	name    string
	acquire func(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error)
}

func (s *stage) callsFor(i *instance) []callFor {
	termed, ok := strategies.As[strategies.Termed](i.lock)
	if !ok {
		s.notApplicable("its calls have no TTL of their own")
	}
	return []callFor{{"AcquireFor", termed.AcquireFor}, {"TryAcquireFor", termed.TryAcquireFor}}
}

// waiterOf makes that call in the background.
func (s *stage) waiterOf(i *instance, key string, call callFor, ttl time.Duration) *waiter {
	return s.waiterFor(i, key, func(ctx context.Context, key string) (strategies.Lease, error) {
		return call.acquire(ctx, s.named(key), ttl)
	})
}

// fillFor takes all permits of a key with that call. A try that a busy machine made fail is repeated.
func (s *stage) fillFor(i *instance, key string, call callFor, ttl time.Duration) (leases []strategies.Lease) {
	for range s.info.Capacity {
		err := errors.New("no answer")
		granted := s.eventually(func() bool {
			w := s.waiterOf(i, key, call, ttl)
			if !w.within(s.patience) {
				return false
			}
			leases, err = append(leases, w.lease), w.err
			if err != nil {
				leases = leases[:len(leases)-1]
			}
			return err == nil
		})
		if !granted {
			s.brokenNow(granting, "%s for %v of a free lock: %v", call.name, ttl, err)
		}
	}
	return leases
}

// outlastsTheLockers has leases with a longer TTL than the Locker's.
func (s *stage) outlastsTheLockers(other *instance) {
	i := s.open(shortTTL)
	var leases []strategies.Lease
	calls := s.callsFor(i)
	for _, call := range calls {
		asked := time.Now()
		filled := s.fillFor(i, call.name, call, longTTL)
		last := filled[len(filled)-1]
		s.believable(i, last, longTTL)
		if timed, ok := strategies.As[strategies.Timed](last); ok {
			if valid := timed.ValidUntil().Sub(asked); valid < longTTL*9/10 { // less drift, of a quorum
				s.fatalf("%s for %v gave a lease that is valid for %v", call.name, longTTL, valid)
			}
		}
		leases = append(leases, filled...)
	}
	time.Sleep(shortTTL * 4 / 3)
	for _, call := range calls {
		if !s.held(other, call.name) { // no machine stands still for so long
			s.fatalf("a lease of %s for %v ran out with its Locker's TTL", call.name, longTTL)
		}
	}
	s.release(leases...)
}

// refusesTTLs asks for leases that would be over at once.
func (s *stage) refusesTTLs(other *instance) {
	i := s.open(longTTL)
	for _, call := range s.callsFor(i) {
		for _, ttl := range []time.Duration{-longTTL, -1, 0, time.Microsecond, time.Millisecond - 1} {
			before := i.probe.Counts().Attempts
			w := s.waiterOf(i, "refused", call, ttl)
			switch {
			case !w.within(s.patience):
				s.fatalf("%s for %v goes on, want an error", call.name, ttl)
			case w.err == nil || w.lease != nil:
				s.fatalf("%s for %v was granted, want an error", call.name, ttl)
			case i.probe.Counts().Attempts > before:
				s.errorf("%s for %v asked for the lock before it was refused", call.name, ttl)
			}
		}
	}
	if !s.eventually(func() bool { return s.free(other, "refused") }) {
		s.fatalf("a call that was refused has taken the lock")
	}
}

// runsOutBeforeTheLockers has leases with a shorter TTL than the Locker's. Their holders die.
func (s *stage) runsOutBeforeTheLockers(other *instance) {
	i := s.open(longTTL)
	calls := s.callsFor(i)
	acquireFor, tryAcquireFor := calls[0], calls[1]
	for _, second := range []*instance{i, other} { // who expects the first to hold for the Locker's TTL
		leases := s.fill(i, "key")
		dies := s.waiterOf(i, "key", acquireFor, shortTTL)
		dies.parked()
		behind := s.waiter(second, "key")
		behind.parked()
		s.release(leases[0])
		free := func() bool { return !s.held(other, "key") } // whichever waiter was the first
		if !dies.within(s.patience) || !behind.within(s.patience) || !s.eventually(free) {
			s.fatalf("a lease of AcquireFor for %v keeps the lock from others for %v", shortTTL, s.patience)
		}
		dies.finish()
		behind.finish()
		s.release(leases[1:]...)
	}

	dead := s.fillFor(i, "tried", tryAcquireFor, shortTTL)[0]
	next := s.waiterFor(other, "tried", other.Acquire)
	if !next.within(s.patience) {
		s.fatalf("a lease of TryAcquireFor for %v keeps the lock from others for %v", shortTTL, s.patience)
	}
	next.finish()
	if timed, ok := strategies.As[strategies.Timed](dead); ok && next.over.Before(timed.ValidUntil()) {
		early := timed.ValidUntil().Sub(next.over)
		s.brokenNow(valid, "another was granted the lock %v before a lease on it ceased to be valid", early)
	}
	s.release(next.lease)
	for _, key := range []string{"key", "tried"} {
		s.release(s.fill(other, key)...) // the other permits come back when a client looks
	}
}

// isNotRenewed has leases with TTLs of their own beside one that the watchdog renews.
func (s *stage) isNotRenewed(other *instance, ttl time.Duration) {
	i := s.open(ttl)
	watched := s.fill(i, "watched")
	calls := s.callsFor(i)
	for _, call := range calls {
		s.fillFor(i, "not renewed by "+call.name, call, 2*ttl)
	}
	time.Sleep(2 * ttl)
	for _, call := range calls {
		if !s.eventually(func() bool { return !s.held(other, "not renewed by "+call.name) }) {
			s.fatalf("a lease of %s for %v is kept by the watchdog", call.name, 2*ttl)
		}
	}
	_ = s.releaseAll(watched) // they may have run out if the machine stood still
}
