package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Lease is the caller's hold of a lock, from Acquire until Release or until the loss of the lease. It is safe for
// concurrent use.
type Lease struct {
	locker   *Locker
	inner    strategies.Lease
	key      string
	ttl      time.Duration
	watchdog bool
	hooks    *Hooks
	since    time.Time // when it was acquired; set only with hooks

	mu         sync.Mutex
	intact     bool               // the lease was valid at the first call of Release
	failed     bool               // the last Release returned an error, although it may have freed the lock
	over       bool               // the lease is lost, or Release was called
	isLost     bool               // the lease was lost before Release was called
	stop       context.CancelFunc // ends the goroutine that watches the lease; nil without one
	end        *time.Timer        // wakes that goroutine at ValidUntil; nil without one
	lost       context.Context    // ends when the lease is lost; nil until untilLost is called
	reportLost context.CancelFunc // ends lost
}

// FencedLease is a Lease with a fencing token.
type FencedLease struct{ Lease }

// FencingToken returns a number that is larger than the token of every earlier lease on the same key, within the
// guarantees of the lock's package. A resource must refuse a request with a token smaller than the largest that it has
// seen.
func (l *FencedLease) FencingToken() int64 {
	f, _ := strategies.As[strategies.Fenced](l.inner)
	return f.FencingToken()
}

// begin fills in a lease that has just been acquired. It starts the goroutine that watches the lease if a watchdog or
// the hook Lost needs it.
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

// Key returns the name of the lock, without the prefix.
func (l *Lease) Key() string { return l.key }

// ValidUntil returns the instant, by this process's clock, until which the holder may rely on the lease. Each extension
// changes it. The zero time means that the lease does not expire.
func (l *Lease) ValidUntil() time.Time {
	if t, ok := strategies.As[strategies.Timed](l.inner); ok {
		return t.ValidUntil()
	}
	return time.Time{}
}

// Extend makes the lease last for ttl from now on. It returns ErrNotHeld if the lease was already lost, and
// errors.ErrUnsupported if the lease does not expire. After any other error the lease ends at its previous end or ttl
// after the call, whichever is earlier, because the server may have shortened it. As long as the server may still
// execute the failed call, a later call prolongs the lease by at most the ttl of the failed call.
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

// endsWithin makes the goroutine that watches the lease, if there is one, check the lease after ttl at the latest. An
// extension that is under way may have moved the end of the lease to that time.
func (l *Lease) endsWithin(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil && ttl < l.left() {
		l.end.Reset(ttl)
	}
}

// Release releases the lock. It returns ErrNotHeld if the lease was already lost. After any other error the Locker
// repeats the release in the background until Redis replies, the lock has expired in Redis, or the Locker is closed.
// The caller may also call Release again. If the lock is free by then, the second call returns nil, not ErrNotHeld.
// Pass a context that has not ended, such as context.WithoutCancel(ctx).
func (l *Lease) Release(ctx context.Context) error {
	l.finish(false)
	err := l.released(l.inner.Release(ctx))
	l.hooks.released(ctx, l, err)
	return err
}

// released returns the error that Release reports when the inner lease's Release has returned err. If an earlier
// release has failed, ErrNotHeld does not prove a loss, because that release or its repetition in the background may
// have freed the lock.
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

// Lost returns a channel that is closed when the lease is lost before Release is called: the lease has expired, or
// Extend, the watchdog or the lock itself finds that the lease is gone. The Locker's Close also closes the channel,
// because no goroutine watches the lease any more.
func (l *Lease) Lost() <-chan struct{} { return l.untilLost().Done() }

// untilLost returns a context that ends when the lease is lost. The first call of untilLost starts the goroutine that
// watches the lease.
func (l *Lease) untilLost() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost, l.reportLost = context.WithCancel(context.Background())
		if l.isLost || l.locker.ctx.Err() != nil {
			l.reportLost()
		}
		l.watch()
	}
	return l.lost
}

// Unwrap returns the lease of the lock's own package, which may have more methods than Lease.
func (l *Lease) Unwrap() strategies.Lease { return l.inner }

// finish ends the goroutine that watches the lease. lost is true if the lease was lost, and false if it is released.
// Only the first call has an effect and returns true. A renewal that fails because of a release therefore reports no
// loss.
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
	if lost && l.lost != nil {
		l.reportLost()
	}
	return true
}

// lose reports the loss of the lease, unless the lease is being released.
func (l *Lease) lose() {
	if l.finish(true) {
		l.hooks.lost(l)
	}
}
