package lock

import (
	"context"
	"time"
)

// Hooks are functions that a Locker calls, for metrics, traces and logs. A nil function costs nothing. A goroutine of
// the Locker calls Lost. All other functions run in the goroutine of the caller of Acquire or Release, which waits for
// them, so they must be quick. All functions must be safe for concurrent use.
type Hooks struct {
	// Waited is called at the end of every Acquire and TryAcquire with the duration of the call. The error is nil if the
	// lock was acquired.
	Waited func(ctx context.Context, key string, wait time.Duration, err error)
	// Acquired is called after Waited, if the lock was acquired.
	Acquired func(ctx context.Context, lease *Lease)
	// Lost is called once when the Locker finds that a lease was lost before its release.
	Lost func(lease *Lease)
	// Released is called at the end of every Release with the time for which the lease was held. The error is nil if the
	// lock was released. After an error WithLock calls Release again, which calls this hook again.
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
