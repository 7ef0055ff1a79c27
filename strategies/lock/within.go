package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

const (
	// releasePatience is how long WithLock tries to release a lock.
	releasePatience = 5 * time.Second
	// releaseTry limits each call of Release. It is shorter than releasePatience, so that WithLock can try again, perhaps
	// on another connection.
	releaseTry = time.Second
	// The pause between two tries starts at firstPause and doubles up to longestPause.
	firstPause, longestPause = 10 * time.Millisecond, 500 * time.Millisecond
)

// WithLock acquires the lock as Acquire does, calls do and then releases the lock, even if do panics. The context
// passed to do ends when ctx ends or the lease is lost; in the second case its cause (context.Cause) is ErrNotHeld. If
// do must not continue without the lock, it must watch this context.
//
// WithLock repeats a release that Redis refuses or does not reply to, for at most five seconds. It returns the error of
// do, joined with the error of the release. ErrNotHeld means that the lock was lost before do returned, so do may have
// run while another client held the lock.
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
		err = errors.Join(err, lease.releaseBy(ending))
	}()
	inside, end := context.WithCancelCause(context.WithValue(ctx, held{}, lease))
	defer end(nil)
	defer context.AfterFunc(lease.untilLost(), func() {
		end(fmt.Errorf("the lock on %q is lost: %w", key, ErrNotHeld))
	})()
	return do(inside)
}

// releaseBy calls Release until it succeeds, until a repetition is pointless, or until ctx ends.
func (l *Lease) releaseBy(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		try, cancel := context.WithTimeout(ctx, releaseTry)
		err := l.Release(try)
		cancel()
		if err == nil || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrClosed) || errors.Is(err, redis.ErrClosed) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// held is the key under which WithLock stores the lease in its context.
type held struct{}

// TokenFrom returns the fencing token of the lock that WithLock acquired for ctx; ok is false if the lock has no
// tokens.
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
