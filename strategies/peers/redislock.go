package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bsm/redislock"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Redislock is a Locker that obtains a redislock.Lock for each lease.
type Redislock struct {
	*poller
	client *redislock.Client
}

// OpenRedislock returns a Locker on the first node. It sends no command to Redis.
func OpenRedislock(config goredis.Config, options PollOptions) (*Redislock, error) {
	p, err := openPoller("redislock", config, options)
	if err != nil {
		return nil, err
	}
	return &Redislock{p, redislock.New(p.config.Nodes[0].Client)}, nil
}

// jitter is the redislock.RetryStrategy of the option tuned. A call of the function returns the next sleep.
type jitter func() time.Duration

// NextBackoff returns a random sleep. It is never 0, because 0 would end the wait.
func (sleep jitter) NextBackoff() time.Duration { return max(sleep(), 1) }

// Acquire calls Obtain, which tries until the caller holds the lock or ctx ends.
func (l *Redislock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	// If the context has no deadline, redislock gives up after a TTL. So Acquire adds a distant deadline to such a
	// context.
	const never = 100 * 365 * 24 * time.Hour
	if _, ends := ctx.Deadline(); !ends {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, never)
		defer done()
	}
	switch o := l.options; {
	case o.Delay > 0:
		return l.obtain(ctx, key, redislock.LinearBackoff(o.Delay))
	case o.Tuned:
		return l.obtain(ctx, key, jitter(tuned.Sleeps(rand.Int64N)))
	}
	return l.obtain(ctx, key, redislock.LinearBackoff(100*time.Millisecond)) // as in the library's documentation
}

// TryAcquire calls Obtain without retries, and returns ErrHeld if another client holds the lock.
func (l *Redislock) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.obtain(ctx, key, redislock.NoRetry())
	if errors.Is(err, redislock.ErrNotObtained) && ctx.Err() == nil {
		return nil, strategies.ErrHeld
	}
	return held, err
}

func (l *Redislock) obtain(ctx context.Context, key string, retry redislock.RetryStrategy) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	name, token := l.config.Key(key), newToken()
	lock, err := l.client.Obtain(ctx, name, l.config.TTL, &redislock.Options{RetryStrategy: retry, Token: token})
	if err == nil {
		return &redislockLease{lock}, nil
	}
	if !errors.Is(err, redislock.ErrNotObtained) && indeterminate.MayHaveRun(err) {
		// The failed try may have acquired the lock. In that case, a second Obtain with the same token succeeds, and the
		// adapter releases its lock.
		settle, done := indeterminate.Settle(ctx)
		defer done()
		if lock, err := l.client.Obtain(settle, name, l.config.TTL, &redislock.Options{Token: token}); err == nil {
			_ = lock.Release(settle) // if this fails, the lock stays taken until its TTL expires
		}
	}
	return nil, fmt.Errorf("obtain %q: %w", name, indeterminate.Because(ctx, err))
}

type redislockLease struct{ lock *redislock.Lock }

// Release deletes the key if its value is the lease's token, and otherwise returns ErrNotHeld.
func (held *redislockLease) Release(ctx context.Context) error {
	err := held.lock.Release(ctx)
	return outcome(ctx, "release", held.lock.Key(), errors.Is(err, redislock.ErrLockNotHeld), err)
}

// Extend sets the TTL of the key if its value is the lease's token, and otherwise returns ErrNotHeld.
func (held *redislockLease) Extend(ctx context.Context, ttl time.Duration) error {
	err := held.lock.Refresh(ctx, ttl, nil)
	return outcome(ctx, "refresh", held.lock.Key(), errors.Is(err, redislock.ErrNotObtained), err)
}
