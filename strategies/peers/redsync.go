package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Redsync is a Locker that makes a redsync.Mutex for each lease.
type Redsync struct {
	*poller
	redsync *redsync.Redsync
}

// OpenRedsync returns a Locker on all nodes. It sends no command to Redis.
func OpenRedsync(config goredis.Config, options PollOptions) (*Redsync, error) {
	p, err := openPoller("redsync", config, options)
	if err != nil {
		return nil, err
	}
	var pools []redis.Pool
	for _, node := range p.config.Nodes {
		pools = append(pools, redsyncredis.NewPool(node.Client))
	}
	return &Redsync{p, redsync.New(pools...)}, nil
}

// Acquire locks a redsync.Mutex. redsync gives up after 32 tries, or if nodes are too slow. Acquire then starts again,
// until ctx ends.
func (l *Redsync) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.lock(ctx, key, func(mutex *redsync.Mutex) error {
		for {
			err := mutex.LockContext(ctx)
			if err == nil || ctx.Err() != nil || !isTaken(err) && !errors.Is(err, redsync.ErrFailed) && !isLate(err) {
				return err
			}
		}
	})
}

// TryAcquire makes one try, and returns ErrHeld if another client holds the lock.
func (l *Redsync) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.lock(ctx, key, func(mutex *redsync.Mutex) error {
		err := mutex.TryLockContext(ctx)
		if isTaken(err) && ctx.Err() == nil {
			return strategies.ErrHeld
		}
		return err
	})
}

func (l *Redsync) lock(ctx context.Context, key string, lock func(*redsync.Mutex) error) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	var token string // the token of the last try
	options := []redsync.Option{
		redsync.WithExpiry(l.config.TTL),
		redsync.WithGenValueFunc(func() (string, error) {
			token = newToken()
			return token, nil
		}),
	}
	switch o := l.options; {
	case o.Delay > 0:
		options = append(options, redsync.WithRetryDelay(o.Delay))
	case o.Tuned:
		sleep := tuned.Sleeps(rand.Int64N)
		options = append(options, redsync.WithRetryDelayFunc(func(int) time.Duration { return sleep() }))
	}
	mutex := l.redsync.NewMutex(l.config.Key(key), options...)
	err := lock(mutex)
	if err == nil {
		held := &redsyncLease{locker: l, mutex: mutex}
		held.until.Set(mutex.Until())
		return held, nil
	}
	err = indeterminate.Because(ctx, err)
	if !errors.Is(err, strategies.ErrHeld) {
		// After a failed try, redsync releases the lock with a context that may have ended, so the adapter releases it again.
		settle, done := indeterminate.Settle(ctx)
		defer done()
		// The error is ignored, because the release fails if no node has the key, and a key that remains expires with its
		// TTL.
		_, _ = l.redsync.NewMutex(mutex.Name(), redsync.WithValue(token)).UnlockContext(settle)
	}
	return nil, fmt.Errorf("lock %q: %w", mutex.Name(), err)
}

// isLate reports whether err is the timeout of a node. redsync waits at most 5 % of the TTL for a node.
func isLate(err error) bool {
	var late net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) && late.Timeout()
}

func isTaken(err error) bool {
	var majority *redsync.ErrTaken
	var one *redsync.ErrNodeTaken
	return errors.As(err, &majority) || errors.As(err, &one)
}

type redsyncLease struct {
	locker *Redsync
	mutex  *redsync.Mutex
	until  validity.Until
}

// ValidUntil returns the end of the lease that redsync computes, with its allowance for clock drift.
func (held *redsyncLease) ValidUntil() time.Time { return held.until.Get() }

// Release deletes the key on all nodes where its value is the lease's token. It returns ErrNotHeld if the lease was
// lost.
func (held *redsyncLease) Release(ctx context.Context) error {
	ok, err := held.mutex.UnlockContext(ctx)
	return held.outcome(ctx, "unlock", ok, err)
}

// Extend extends the lease by a second Mutex with the same value, because the expiry of a Mutex cannot be changed.
func (held *redsyncLease) Extend(ctx context.Context, ttl time.Duration) error {
	mutex := held.locker.redsync.NewMutex(held.mutex.Name(),
		redsync.WithExpiry(ttl), redsync.WithValue(held.mutex.Value()))
	ok, err := mutex.ExtendContext(ctx)
	if err := held.outcome(ctx, "extend", ok, err); err != nil {
		return err
	}
	held.mutex = mutex
	held.until.Set(mutex.Until())
	return nil
}

func (held *redsyncLease) outcome(ctx context.Context, what string, ok bool, err error) error {
	if ok {
		return nil
	}
	lost := err == nil || isTaken(err) || errors.Is(err, redsync.ErrLockAlreadyExpired)
	return outcome(ctx, what, held.mutex.Name(), lost, err)
}
