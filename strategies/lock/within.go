package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// releasePatience is how long WithLock tries to give up a lock.
const releasePatience = 5 * time.Second

// WithLock acquires the lock as Acquire does, calls do, and releases it, also when do
// panics. The context that do gets ends when ctx does, and when the lease is lost: its
// cause (context.Cause) then is ErrNotHeld. A do that must not go on without the lock
// has to watch it.
//
// The error is do's, joined with that of the release: ErrNotHeld says that the lock was lost before
// do returned, and that do may have run beside another holder.
func (l *Locker) WithLock(
	ctx context.Context, key string, do func(ctx context.Context) error, options ...CallOption,
) (err error) {
	lease, err := l.Acquire(ctx, key, options...)
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
		defer cancel()
		err = errors.Join(err, lease.Release(ending))
	}()
	inside, end := context.WithCancelCause(context.WithValue(ctx, held{}, lease))
	defer end(nil)
	defer context.AfterFunc(lease.untilLost(), func() {
		end(fmt.Errorf("the lock on %q is lost: %w", key, ErrNotHeld))
	})()
	return do(inside)
}

// held is a context's key.
type held struct{}

// TokenFrom returns the fencing token of the lock that WithLock has acquired for ctx; ok is
// false if that lock has none.
func TokenFrom(ctx context.Context) (token int64, ok bool) {
	lease, ok := ctx.Value(held{}).(*Lease)
	if !ok {
		return 0, false
	}
	f, ok := strategies.As[strategies.Fenced](lease.inner)
	if !ok {
		return 0, false
	}
	return f.FencingToken(), true
}
