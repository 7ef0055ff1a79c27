// Package strategies is what all locks have in common: a Locker grants Leases, Info says what
// the lock promises, and a registry finds it by name.
//
// It knows nothing of measuring. Each strategy below this package is a lock library of its
// own: open it with a Config and use it in a service. No strategy registers itself: package
// all does it for lockbench.
package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotHeld is returned by Release and Extend when the lease was lost before: its TTL
	// ran out, or another client holds the lock now.
	ErrNotHeld = errors.New("lock not held")
	// ErrHeld is returned by TryAcquire when another client holds the lock.
	ErrHeld = errors.New("lock held by another")
	// ErrNoQuorum is returned by Acquire when too few nodes answer for a majority.
	ErrNoQuorum = errors.New("no quorum of nodes")
	// ErrClosed is returned by Acquire on a Locker that has been closed.
	ErrClosed = errors.New("locker closed")
)

// WaitEnded is the error of an Acquire whose ctx ended while it waited for another to give the lock
// up, not for an answer: ctx's error with its cause. It is nil if ctx has not ended. By the cause package lock
// knows where its Wait ended.
func WaitEnded(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); err != nil && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// Locker is one application instance's handle on a strategy. It is safe for
// concurrent use by all clients of that instance.
type Locker interface {
	// Acquire blocks until the lock on key is held, ctx ends, or the strategy
	// must give up (ErrNoQuorum, ErrClosed, a transport error). When it returns
	// an error nothing is held and nothing is left waiting. An error caused by
	// ctx satisfies errors.Is(err, ctx.Err()), also where a socket's deadline ends the
	// call just before ctx does.
	Acquire(ctx context.Context, key string) (Lease, error)
	// Close frees what the Locker opened itself: connections, subscriptions,
	// goroutines. It does not release leases and does not close the Nodes'
	// clients, which belong to the caller. It must not be called while an
	// Acquire is running.
	Close() error
}

// Lease is a lock held. A Lease belongs to one holder; its methods are not
// meant to be called concurrently.
type Lease interface {
	// Release gives the lock up. ErrNotHeld means that the lease was lost before; the call
	// does not affect the next holder. Give it a context of its own: with one that has ended
	// the lock may stay until its TTL. Locks on Redis repeat a release that has failed in the
	// background; a later Release may then return ErrNotHeld.
	Release(ctx context.Context) error
}

// The optional capabilities of Lockers and Leases. As finds them, in wrappers too.
type (
	// Extender is a Lease whose TTL can be renewed.
	Extender interface {
		// Extend makes the lease valid for ttl from now on, or returns ErrNotHeld. What a Timed
		// lease says may differ: earlier if a shorter extension may still come, later if the
		// lock never shortens a lease.
		Extend(ctx context.Context, ttl time.Duration) error
	}
	// Fenced is a Lease with a token that is larger than that of every earlier
	// lease on the same key, so that a resource can refuse a late writer.
	Fenced interface {
		FencingToken() int64
	}
	// Timed is a Lease that knows the instant up to which it may be relied on,
	// computed from a time taken before the lock was asked for.
	Timed interface {
		// ValidUntil may be called while others use the lease.
		ValidUntil() time.Time
	}
	// Watched is a Lease that says when it has been lost.
	Watched interface {
		// Lost is closed once the lease is known to be lost.
		Lost() <-chan struct{}
	}
	// Reentrant is a Locker that lets the same owner acquire again what it
	// holds; the lock is free after as many releases.
	Reentrant interface {
		AcquireAs(ctx context.Context, key, owner string) (Lease, error)
	}
	// Preparer is a Locker with things that should exist before the first
	// Acquire: scripts, connections, subscriptions of the whole process.
	Preparer interface {
		Prepare(ctx context.Context, keys []string) error
	}
	// Incrementer is a Locker that is no lock: it does the work that a lock would protect in
	// one atomic operation, and keeps nobody out.
	Incrementer interface {
		// Increment adds one to the counter.
		Increment(ctx context.Context, counter string) error
	}
	// Trier is a Locker with a try-lock: one attempt, no waiting.
	Trier interface {
		// TryAcquire returns ErrHeld at once when another client holds the lock.
		TryAcquire(ctx context.Context, key string) (Lease, error)
	}
	// Termed is a Locker whose leases can each have a TTL of their own, in place of
	// Config.TTL. A TTL below a millisecond is refused.
	Termed interface {
		// AcquireFor is Acquire for a lease of ttl.
		AcquireFor(ctx context.Context, key string, ttl time.Duration) (Lease, error)
		// TryAcquireFor is Trier's TryAcquire for a lease of ttl.
		TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (Lease, error)
	}
)
