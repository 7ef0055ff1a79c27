package lock

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// watch starts the goroutine that watches the lease, unless it is already running or the lease is over. The caller
// holds the mutex.
func (l *Lease) watch() {
	if l.stop != nil || l.over || l.locker.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(l.locker.ctx)
	l.stop, l.end = stop, time.NewTimer(l.left())
	l.locker.watchers.Go(func() { l.run(ctx) })
}

// run reports the loss of the lease. With a watchdog it also renews the lease. Renewals run in another goroutine,
// because a reply may arrive after the lease's end. At most one renewal is under way.
func (l *Lease) run(ctx context.Context) {
	defer l.end.Stop()
	var lost <-chan struct{}
	if w, ok := strategies.As[strategies.Watched](l.inner); ok {
		lost = w.Lost()
	}
	next := time.NewTimer(l.rest(nil))
	defer next.Stop()
	if !l.watchdog {
		next.Stop()
	}
	renewed := make(chan error, 1)
	for over := false; !over; {
		select {
		case <-ctx.Done(): // released or lost, or the Locker is closed
			over = true
		case <-lost:
			over = true
		case <-l.end.C:
		case <-next.C:
			l.locker.renewals.Go(func() { renewed <- l.renew(ctx) })
		case err := <-renewed:
			over = errors.Is(err, ErrNotHeld)
			next.Reset(l.rest(err))
		}
		if left := l.left(); left > 0 {
			l.end.Reset(left)
		} else {
			over = true
		}
	}
	l.lose()
}

// left returns the remaining validity of the lease. For a lease that does not expire it returns the TTL, after which
// run checks again.
func (l *Lease) left() time.Duration {
	if until := l.ValidUntil(); !until.IsZero() {
		return time.Until(until)
	}
	return l.ttl
}

// rest returns the time until the next renewal: a third of the lease's remaining time, and at most a third of the TTL.
// After a failed renewal it is at most a tenth of the TTL.
func (l *Lease) rest(failed error) time.Duration {
	rest := min(l.left(), l.ttl) / 3
	if failed != nil {
		rest = min(rest, l.ttl/10)
	}
	return max(rest, time.Millisecond)
}

// renew extends the lease by its TTL. It gives up after a third of the TTL, so that there is time for another renewal.
func (l *Lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl/3, 10*time.Millisecond))
	defer cancel()
	return l.Extend(ctx, l.ttl)
}
