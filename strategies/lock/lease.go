package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Lease is a lock held. It is safe for concurrent use.
type Lease struct {
	locker   *Locker
	inner    strategies.Lease
	key      string
	ttl      time.Duration
	watchdog bool
	hooks    *Hooks
	since    time.Time // only with hooks

	mu     sync.Mutex
	intact bool               // it was valid when Release was first called
	failed bool               // the last Release has failed; what it sent may have freed the lock
	over   bool               // lost, or Release was called
	isLost bool               // before Release was called
	stop   context.CancelFunc // ends its goroutine; nil without one
	end    *time.Timer        // at ValidUntil, for its goroutine; nil without one
	told   context.Context    // ends when it is lost; nil until it is asked for
	tell   context.CancelFunc // ends told
}

// FencedLease is a Lease with a fencing token.
type FencedLease struct{ Lease }

// FencingToken is larger than that of every earlier lease on the same key, as far as the
// lock's package promises it: a resource that has seen a larger one refuses this holder.
func (l *FencedLease) FencingToken() int64 {
	f, _ := strategies.As[strategies.Fenced](l.inner)
	return f.FencingToken()
}

// begin fills in a lease that was acquired just now.
func (l *Lease) begin(locker *Locker, inner strategies.Lease, key string, s settings) {
	l.locker, l.inner, l.key, l.ttl, l.hooks = locker, inner, key, s.ttl, s.hooks
	if l.hooks != nil {
		l.since = time.Now()
	}
	if s.watchdog {
		_, l.watchdog = strategies.As[strategies.Extender](inner)
	}
	if l.watchdog || l.hooks != nil && l.hooks.Lost != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watch()
	}
}

// Key returns what was locked.
func (l *Lease) Key() string { return l.key }

// ValidUntil returns until when the lease may be relied on unless it is extended, by this
// process's clock. The zero time means that it does not run out.
func (l *Lease) ValidUntil() time.Time {
	if t, ok := strategies.As[strategies.Timed](l.inner); ok {
		return t.ValidUntil()
	}
	return time.Time{}
}

// Extend makes the lease last ttl from now on. It returns ErrNotHeld if it had been lost, and
// errors.ErrUnsupported if it does not run out. After another error its end is as it was, or
// ttl from then on if that is earlier: the server may have shortened it. While it may still do
// so, no later call prolongs the lease by more.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	e, ok := strategies.As[strategies.Extender](l.inner)
	if !ok {
		return errors.ErrUnsupported
	}
	if err := validTTL(ttl); err != nil {
		return fmt.Errorf("extend %q: %w", l.key, err)
	}
	l.endsWithin(ttl)
	err := e.Extend(ctx, ttl)
	if errors.Is(err, ErrNotHeld) {
		l.lose()
	}
	return err
}

// endsWithin has the lease's goroutine look after ttl, if there is one: an extension that is under way may have moved
// the end there.
func (l *Lease) endsWithin(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil && ttl < l.left() {
		l.end.Reset(ttl)
	}
}

// Release gives the lock up. It returns ErrNotHeld if it had been lost before. After any other error the lock repeats
// the release in the background, until Redis answers, until the lock has run out there, or until the Locker's Close.
// Release may also be called again: if the lock is free by then, that is no loss. Give it a context that has not
// ended, such as context.WithoutCancel(ctx).
func (l *Lease) Release(ctx context.Context) error {
	l.finish(false)
	err := l.released(l.inner.Release(ctx))
	l.hooks.released(ctx, l, err)
	return err
}

// released returns the error of Release for that of the lock's own. ErrNotHeld after a failed release tells nothing:
// what that has sent, or its repetition in the background, may have freed the lock.
func (l *Lease) released(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := l.failed
	notHeld := errors.Is(err, ErrNotHeld)
	if l.failed = err != nil && !notHeld; notHeld && failed && l.intact {
		return nil
	}
	return err
}

// Lost returns a channel that is closed when the lease is lost before Release is called: it
// has run out, or Extend, the watchdog or the lock itself finds that another has the lock.
// The Locker's Close closes it too, since nothing looks after the lease any more.
func (l *Lease) Lost() <-chan struct{} { return l.untilLost().Done() }

// untilLost returns a context that ends when the lease is lost.
func (l *Lease) untilLost() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told == nil {
		l.told, l.tell = context.WithCancel(context.Background())
		if l.isLost || l.locker.ctx.Err() != nil {
			l.tell()
		}
		l.watch()
	}
	return l.told
}

// Unwrap returns the lock's own lease.
func (l *Lease) Unwrap() strategies.Lease { return l.inner }

// finish ends what is done for the lease when it is released or lost. Only the first call
// counts: a renewal that meets a release reports no loss.
func (l *Lease) finish(lost bool) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.over, l.isLost, l.intact = true, lost, !lost && l.left() > 0
	if l.stop != nil {
		l.stop()
	}
	if lost && l.told != nil {
		l.tell()
	}
	return true
}

// lose says that the lease is lost, unless it is being released.
func (l *Lease) lose() {
	if l.finish(true) {
		l.hooks.lost(l)
	}
}
