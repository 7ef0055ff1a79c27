package lock

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// watch starts a goroutine that looks after the lease, unless one does or it is over. The
// caller has the mutex.
func (l *Lease) watch() {
	if l.stop != nil || l.over || l.locker.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(l.locker.ctx)
	l.stop = stop
	l.locker.watchers.Go(func() { l.run(ctx) })
}

// run renews the lease where there is a watchdog, and says when it is lost.
func (l *Lease) run(ctx context.Context) {
	var lost <-chan struct{}
	if w, ok := strategies.As[strategies.Watched](l.inner); ok {
		lost = w.Lost()
	}
	next := time.NewTimer(l.rest(nil))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done(): // over, or the Locker is closed
			l.lose()
			return
		case <-lost:
			l.lose()
			return
		case <-next.C:
		}
		var err error
		if l.watchdog {
			err = l.renew(ctx)
		}
		if until := l.ValidUntil(); !until.IsZero() && !time.Now().Before(until) || errors.Is(err, ErrNotHeld) {
			l.lose()
			return
		}
		next.Reset(l.rest(err))
	}
}

// rest is how long to wait: until the next renewal, after a third of what remains at most, and
// without a watchdog until the lease's end.
func (l *Lease) rest(failed error) time.Duration {
	rest := l.ttl // a lease that does not run out needs no look
	if until := l.ValidUntil(); !until.IsZero() {
		rest = time.Until(until)
	}
	switch {
	case l.watchdog && failed != nil:
		rest = min(rest/3, l.ttl/10)
	case l.watchdog:
		rest = min(rest, l.ttl) / 3
	}
	return max(rest, time.Millisecond)
}

// renew extends the lease by its TTL. It gives up after a third of the TTL, to try again.
func (l *Lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl/3, 10*time.Millisecond))
	defer cancel()
	return l.Extend(ctx, l.ttl)
}
