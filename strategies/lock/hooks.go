package lock

import (
	"context"
	"time"
)

// Hooks are called by a Locker, for metrics, traces and logs. Each may be nil, and then costs
// nothing. The caller's goroutine calls them (Lost: one of the Locker's) and waits for them:
// they should be quick. They must be safe for concurrent use.
type Hooks struct {
	// Waited is called at the end of every Acquire and TryAcquire, with how long it took. The error
	// is nil if the lock was acquired.
	Waited func(ctx context.Context, key string, wait time.Duration, err error)
	// Acquired is called after Waited, if the lock was acquired.
	Acquired func(ctx context.Context, lease *Lease)
	// Lost is called when a lease is found to be lost before it was released, once.
	Lost func(lease *Lease)
	// Released is called at the end of every Release, with how long the lease was held. The
	// error is nil if it was released. WithLock calls Release again after an error.
	Released func(ctx context.Context, lease *Lease, held time.Duration, err error)
}

func (h *Hooks) waited(ctx context.Context, key string, since time.Time, err error) {
	if h != nil && h.Waited != nil {
		h.Waited(ctx, key, time.Since(since), err)
	}
}

func (h *Hooks) acquired(ctx context.Context, lease *Lease) {
	if h != nil && h.Acquired != nil {
		h.Acquired(ctx, lease)
	}
}

func (h *Hooks) lost(lease *Lease) {
	if h != nil && h.Lost != nil {
		h.Lost(lease)
	}
}

func (h *Hooks) released(ctx context.Context, lease *Lease, err error) {
	if h != nil && h.Released != nil {
		h.Released(ctx, lease, time.Since(lease.since), err)
	}
}
