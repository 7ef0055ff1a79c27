// Package strategies defines what all locks have in common: a Locker grants Leases, an Info describes the lock's
// guarantees, and a registry finds the lock by name.
//
// The package measures nothing. The packages below this package are independent lock libraries, which a service can
// open with a Config. No strategy registers itself. Package all registers every strategy for lockbench.
package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotHeld is returned by Release and Extend when the lease was lost before the call: its TTL ran out, or another
	// client now holds the lock.
	ErrNotHeld = errors.New("lock not held")
	// ErrHeld is returned by TryAcquire when another client holds the lock.
	ErrHeld = errors.New("lock held by another")
	// ErrNoQuorum is returned by Acquire when fewer nodes than a majority reply.
	ErrNoQuorum = errors.New("no quorum of nodes")
	// ErrClosed is returned by Acquire on a Locker that has been closed.
	ErrClosed = errors.New("locker closed")
)

// WaitEnded returns the error of an Acquire whose ctx ended while it waited for another holder to release the lock:
// ctx's error with its cause. An Acquire that was waiting for a reply from the store must not use WaitEnded. WaitEnded
// returns nil if ctx has not ended. From the cause, package lock knows that its Wait ended while the lock was held.
func WaitEnded(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); err != nil && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// Locker is one application instance's handle to a strategy. It is safe for concurrent use by all clients of that
// instance.
type Locker interface {
	// Acquire blocks until the caller holds the lock on key, ctx ends, or the strategy must give up (ErrNoQuorum,
	// ErrClosed, a transport error). After an error the caller holds no lock and waits in no queue. An error caused by ctx
	// satisfies errors.Is(err, ctx.Err()), even if a socket's deadline ends the call just before ctx does.
	Acquire(ctx context.Context, key string) (Lease, error)
	// Close ends the connections, subscriptions and goroutines that the Locker opened. It does not release leases and
	// does not close the Nodes' clients, which belong to the caller. It must not be called while an Acquire is running.
	Close() error
}

// Lease is a lock that the caller holds. A Lease belongs to one holder; its methods are not meant to be called
// concurrently.
type Lease interface {
	// Release releases the lock. ErrNotHeld means that the lease was already lost; the call does not affect the next
	// holder. Pass a context that has not ended, otherwise the lock may stay taken until its TTL expires. Locks on Redis
	// repeat a failed release in the background; a later Release may then return ErrNotHeld.
	Release(ctx context.Context) error
}

// The following interfaces are optional capabilities of Lockers and Leases. As finds them, even inside wrappers.
type (
	// Extender is a Lease whose TTL can be renewed.
	Extender interface {
		// Extend makes the lease valid for ttl from now on, or returns ErrNotHeld. The new ValidUntil of a Timed lease may be
		// earlier than this time, if a shorter extension may still reach the store. It may be later, if the lock never
		// shortens a lease.
		Extend(ctx context.Context, ttl time.Duration) error
	}
	// Fenced is a Lease with a fencing token that is larger than the tokens of all earlier leases on the same key. With
	// the token, a resource can refuse writes by an earlier holder.
	Fenced interface {
		FencingToken() int64
	}
	// Timed is a Lease that knows the instant until which its holder may rely on it. That instant is computed from a time
	// taken before the request for the lock was sent.
	Timed interface {
		// ValidUntil may be called concurrently with the lease's other methods.
		ValidUntil() time.Time
	}
	// Watched is a Lease that reports its loss.
	Watched interface {
		// Lost returns a channel that is closed once the lease is known to be lost.
		Lost() <-chan struct{}
	}
	// Reentrant is a Locker with which an owner can acquire a lock again while holding it. The lock becomes free after the
	// same number of releases.
	Reentrant interface {
		AcquireAs(ctx context.Context, key, owner string) (Lease, error)
	}
	// Preparer is a Locker with resources that should exist before the first Acquire, such as scripts, connections, or
	// subscriptions that the whole process shares.
	Preparer interface {
		Prepare(ctx context.Context, keys []string) error
	}
	// Incrementer is a Locker that is not a lock: instead of excluding clients it does the protected work in one atomic
	// operation.
	Incrementer interface {
		// Increment adds one to the counter.
		Increment(ctx context.Context, counter string) error
	}
	// Trier is a Locker with a try-lock: one attempt, no waiting.
	Trier interface {
		// TryAcquire returns ErrHeld at once when another client holds the lock.
		TryAcquire(ctx context.Context, key string) (Lease, error)
	}
	// Termed is a Locker that can grant a lease with a TTL other than Config.TTL. It refuses a TTL below one millisecond.
	Termed interface {
		// AcquireFor is like Acquire, but the lease has the TTL ttl.
		AcquireFor(ctx context.Context, key string, ttl time.Duration) (Lease, error)
		// TryAcquireFor is like Trier's TryAcquire, but the lease has the TTL ttl.
		TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (Lease, error)
	}
)
