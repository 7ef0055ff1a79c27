package lock

import (
	"context"
	"time"
)

// Hooks are functions that a Locker calls, for metrics, traces and logs. A nil function costs nothing. Lost runs in a
// goroutine of the Locker, or in the goroutine that called Extend if Extend finds the loss. The other functions run in
// the goroutine that called Acquire or Release. A hook delays the call during which it runs, so it must be quick. All
// functions must be safe for concurrent use.
type Hooks struct {
	// Waited is called at the end of every Acquire and TryAcquire with the duration of the call. err is nil if the lock
	// was acquired.
	Waited func(ctx context.Context, key string, wait time.Duration, err error)
	// Acquired is called after Waited, if the lock was acquired.
	Acquired func(ctx context.Context, lease *Lease)
	// Lost is called once when the Locker finds that a lease was lost before its release. Close calls it for each lease
	// that is still held, because no goroutine watches the lease any more.
	Lost func(lease *Lease)
	// Released is called at the end of every Release. held is how long the lease was held; err is nil if the lock was
	// released. If WithLock calls Release again after an error, Released is called again too.
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
