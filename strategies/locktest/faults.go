package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// staleTTL is the TTL of leases that must run out soon, even if the machine stands still.
const staleTTL = 100 * time.Millisecond

// lasting is the TTL of leases that must not help a waiter by running out. A quorum's lease
// may stay on a minority of the nodes until its TTL ends, so a quorum's TTL is shorter.
func (s *stage) lasting() time.Duration {
	if s.info.Nodes > 1 {
		return 3 * time.Second
	}
	return longTTL
}

// background runs do in the background.
func (s *stage) background(i *instance, key string, do func(context.Context) error) *waiter {
	w := s.newWaiter(i, key)
	w.run(do)
	return w
}

// returned waits until the background call is over.
func (w *waiter) returned(what string) {
	if !w.within(w.s.patience) {
		w.s.fatalf("%s does not return within %v", what, w.s.patience)
	}
}

// asked asks for the lock once, by try-lock if there is one, and returns the lease. It
// returns nil when the lock is held.
func (s *stage) asked(i *instance, key string) strategies.Lease {
	if trier, ok := strategies.As[strategies.Trier](i.Locker); ok {
		w := s.waiterFor(i, key, trier.TryAcquire)
		w.returned("a try-lock")
		return w.lease
	}
	w := s.waiterFor(i, key, i.Acquire)
	w.within(50 * time.Millisecond)
	w.end()
	return w.lease
}

// validUntil is the end of the validity of a lease that was asked for at asked.
func validUntil(lease strategies.Lease, asked time.Time, ttl time.Duration) time.Time {
	if timed, ok := strategies.As[strategies.Timed](lease); ok {
		return timed.ValidUntil()
	}
	return asked.Add(ttl)
}

// again releases until the result is nil or ErrNotHeld, or until patience is over.
func (s *stage) again(lease strategies.Lease) (err error) {
	for end := time.Now().Add(s.patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err = lease.Release(ctx)
		cancel()
		if err == nil || errors.Is(err, strategies.ErrNotHeld) {
			return err
		}
	}
	return err
}
