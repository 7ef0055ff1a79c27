// Package redsync adapts github.com/go-redsync/redsync/v4, through its public
// interface and at its documented defaults, to compare with.
//
// An uncontended acquire is one SET NX on each node, a release one EVALSHA (GET and
// DEL inside). A failed try costs a SET and an EVALSHA on each node, which takes
// back what was not won; then it sleeps at random between 50 and 250 ms. Nobody
// is woken.
//
// It claims exclusion over a majority of the nodes and frees a dead holder's
// lock after the TTL. What breaks it: a holder that works on past ValidUntil;
// clocks that drift by more than 1 %.
//
// redsync gives up after 32 tries. Where others wait, this adapter starts over
// until the context ends, so one try in 32 comes without a sleep before it; only
// when in the last try no node has answered that the lock is taken does it return
// redsync's error. A try that the context ends in the middle of leaves its lock
// behind, as redsync takes back with a context that has ended; the adapter does it
// then, for one more EVALSHA.
package redsync

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	peer "github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

func init() {
	strategies.Register(strategies.Info{
		Name:     "redsync",
		Summary:  "go-redsync/redsync v4: SET NX PX, polled every 50 to 250 ms",
		Claims:   strategies.Claims{Exclusion: true, Recovery: true},
		Capacity: 1,
		Nodes:    1,
		BlackBox: true,
	}, Defaults(), New)
}

// Options tune redsync.
type Options struct {
	Delay time.Duration `opt:"delay" help:"sleep between tries; 0s is redsync's own, random between 50 and 250 ms"`
}

// Defaults are redsync's own.
func Defaults() Options { return Options{} }

// Validate returns every fault, joined.
func (o Options) Validate() error {
	if o.Delay < 0 {
		return fmt.Errorf("delay must not be negative, not %v", o.Delay)
	}
	return nil
}

// Locker makes a redsync.Mutex for each lease.
type Locker struct {
	config  strategies.Config
	options []peer.Option
	peer    *peer.Redsync
	closed  atomic.Bool
}

// New returns a Locker on all nodes.
func New(config strategies.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("redsync: %w", err)
	}
	var pools []redis.Pool
	for _, node := range config.Nodes {
		pools = append(pools, goredis.NewPool(node.Client))
	}
	l := &Locker{config: config, peer: peer.New(pools...), options: []peer.Option{peer.WithExpiry(config.TTL)}}
	if options.Delay > 0 {
		l.options = append(l.options, peer.WithRetryDelay(options.Delay))
	}
	l.options = slices.Clip(l.options) // every mutex appends its own
	return l, nil
}

// Acquire locks a mutex of that name.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.lock(ctx, key, func(mutex *peer.Mutex) error {
		for {
			err := mutex.LockContext(ctx)
			if err == nil || ctx.Err() != nil || !again(err) {
				return err
			}
		}
	})
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.lock(ctx, key, func(mutex *peer.Mutex) error {
		err := mutex.TryLockContext(ctx)
		if isTaken(err) && ctx.Err() == nil {
			return strategies.ErrHeld
		}
		return err
	})
}

func (l *Locker) lock(ctx context.Context, key string, lock func(*peer.Mutex) error) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	var token string // of the last try
	mutex := l.peer.NewMutex(l.config.Key(key), append(l.options, peer.WithGenValueFunc(func() (string, error) {
		token = newToken()
		return token, nil
	}))...)
	err := lock(mutex)
	if err == nil {
		held := &lease{locker: l, mutex: mutex}
		held.until.Set(mutex.Until())
		return held, nil
	}
	err = doubt.Because(ctx, err)
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		settle, done := doubt.Settle(ctx)
		defer done()
		// It fails where there is nothing to take back; else the TTL does it.
		_, _ = l.peer.NewMutex(mutex.Name(), peer.WithValue(token)).UnlockContext(settle)
	}
	return nil, fmt.Errorf("lock %q: %w", mutex.Name(), err)
}

// newToken is what redsync makes by itself: 16 random bytes in base64.
func newToken() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	return base64.StdEncoding.EncodeToString(random[:])
}

// Close refuses further calls; leases can still be released.
func (l *Locker) Close() error {
	l.closed.Store(true)
	return nil
}

// again says whether a lock that failed may succeed when tried again: somebody has
// it, or the nodes were too slow for redsync, which allows them 5 % of the TTL.
func again(err error) bool {
	var late net.Error
	return isTaken(err) || errors.Is(err, peer.ErrFailed) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &late) && late.Timeout()
}

func isTaken(err error) bool {
	var majority *peer.ErrTaken
	var one *peer.ErrNodeTaken
	return errors.As(err, &majority) || errors.As(err, &one)
}

// lease is a mutex that is locked.
type lease struct {
	locker *Locker
	mutex  *peer.Mutex
	until  validity.Until
}

// ValidUntil is as redsync computes it, less drift.
func (held *lease) ValidUntil() time.Time { return held.until.Get() }

// Release unlocks the mutex.
func (held *lease) Release(ctx context.Context) error {
	ok, err := held.mutex.UnlockContext(ctx)
	return held.outcome(ctx, "unlock", ok, err)
}

// Extend extends the mutex, as one of that expiry.
func (held *lease) Extend(ctx context.Context, ttl time.Duration) error {
	mutex := held.locker.peer.NewMutex(held.mutex.Name(),
		peer.WithExpiry(ttl), peer.WithValue(held.mutex.Value()))
	ok, err := mutex.ExtendContext(ctx)
	if err := held.outcome(ctx, "extend", ok, err); err != nil {
		return err
	}
	held.mutex = mutex
	held.until.Set(mutex.Until())
	return nil
}

func (held *lease) outcome(ctx context.Context, what string, ok bool, err error) error {
	switch {
	case ok:
		return nil
	case err == nil, isTaken(err), errors.Is(err, peer.ErrLockAlreadyExpired):
		return strategies.ErrNotHeld
	}
	return fmt.Errorf("%s %q: %w", what, held.mutex.Name(), doubt.Because(ctx, err))
}
