// Package redsync adapts github.com/go-redsync/redsync/v4, through its public
// interface and at its documented defaults, to compare with.
//
// redsync.md has the rest: what it guarantees, what breaks it, and what it costs.
package redsync

import (
	"context"
	cryptorand "crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"time"

	peer "github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/internal/validity"
	"github.com/lockbench/lockbench/strategies/polled"
)

//go:embed redsync.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:       doc,
		Name:      "redsync",
		Summary:   "go-redsync/redsync v4: SET NX PX, polled every 50 to 250 ms",
		Claims:    strategies.Claims{Exclusion: true, Recovery: true},
		Capacity:  1,
		Nodes:     1,
		BlackBox:  true,
		Library:   "github.com/go-redsync/redsync/v4",
		Libraries: []strategies.Library{{Language: "Go", Package: "github.com/go-redsync/redsync/v4", Call: "Redsync.NewMutex"}},
		Limits:    []strategies.Limit{strategies.ByRedisClock()},
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"set", "get", "del", "pexpire", "eval", "evalsha"},
		},
	}, Defaults(), Open)
}

// Options tune redsync.
type Options struct {
	Tuned bool          `opt:"tuned" help:"sleep with full jitter, up to 4 ms at first and 1 s at last"`
	Delay time.Duration `opt:"delay" help:"sleep between tries; 0s is redsync's own, random between 50 and 250 ms, or that of tuned"`

	Pipeline bool `opt:"pipeline" help:"send the commands of all callers down one connection, gathered into pipelines"`
}

// Defaults are redsync's own.
func Defaults() Options { return Options{} }

// tuned is the sleep between the tries of a tuned redsync.
var tuned = polled.SpinOptions{Backoff: polled.FullJitter, Base: 4 * time.Millisecond, Cap: time.Second}

// Refine adds the pipeline's connection, and how the library is told to sleep.
func (o Options) Refine(info strategies.Info) strategies.Info {
	if o.Tuned && o.Delay == 0 {
		info.Libraries = slices.Clone(info.Libraries)
		info.Libraries[0].Call += " WithRetryDelayFunc (random, up to 4 ms at first and 1 s at last)"
	}
	return pipeline.Refine(info, o.Pipeline)
}

// Validate returns every error, joined.
func (o Options) Validate() error {
	if o.Delay < 0 {
		return fmt.Errorf("delay must not be negative, not %v", o.Delay)
	}
	return nil
}

// Locker makes a redsync.Mutex for each lease.
type Locker struct {
	config  goredis.Config
	options Options
	peer    *peer.Redsync
	hangUp  func() error // ends the pipeline
	closed  atomic.Bool
}

// Open returns a Locker on all nodes.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("redsync: %w", err)
	}
	config, hangUp, err := pipeline.Over(config, options.Pipeline)
	if err != nil {
		return nil, fmt.Errorf("redsync: %w", err)
	}
	var pools []redis.Pool
	for i, node := range config.Nodes {
		pools = append(pools, pool{redsyncredis.NewPool(node.Client), i})
	}
	return &Locker{config: config, options: options, peer: peer.New(pools...), hangUp: hangUp}, nil
}

// mutexOptions returns the options of a new mutex, which writes the token of each try to
// token.
func (l *Locker) mutexOptions(token *string) []peer.Option {
	set := []peer.Option{
		peer.WithExpiry(l.config.TTL),
		peer.WithGenValueFunc(func() (string, error) {
			*token = newToken()
			return *token, nil
		}),
	}
	switch {
	case l.options.Delay > 0:
		set = append(set, peer.WithRetryDelay(l.options.Delay))
	case l.options.Tuned:
		sleep := tuned.Sleeps(rand.Int64N)
		set = append(set, peer.WithRetryDelayFunc(func(int) time.Duration { return sleep() }))
	}
	return set
}

// Acquire locks a mutex of that name.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.lock(ctx, key, func(ctx context.Context, mutex *peer.Mutex) error {
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
	return l.lock(ctx, key, func(ctx context.Context, mutex *peer.Mutex) error {
		err := mutex.TryLockContext(ctx)
		if isTaken(err) && ctx.Err() == nil {
			return strategies.ErrHeld
		}
		return err
	})
}

func (l *Locker) lock(ctx context.Context, key string, lock func(context.Context, *peer.Mutex) error) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	var token string // of the last try
	mutex := l.peer.NewMutex(l.config.Key(key), l.mutexOptions(&token)...)
	watched, done := watch(ctx, len(l.config.Nodes))
	defer done()
	err := lock(watched, mutex)
	if err == nil {
		held := &lease{locker: l, mutex: mutex}
		held.until.Set(mutex.Until())
		return held, nil
	}
	if ctx.Err() == nil && watched.Err() != nil {
		err = context.Cause(watched) // redsync says only that it failed
	}
	err = indeterminate.Because(ctx, err)
	if ctx.Err() != nil || watched.Err() != nil && indeterminate.MayHaveRun(err) || errors.Is(err, context.DeadlineExceeded) {
		settle, done := indeterminate.Settle(ctx)
		defer done()
		// It fails if there is nothing to take back; if something stays, the TTL frees it.
		_, _ = l.peer.NewMutex(mutex.Name(), peer.WithValue(token)).UnlockContext(settle)
	}
	return nil, fmt.Errorf("lock %q: %w", mutex.Name(), err)
}

// newToken returns what redsync makes by itself: 16 random bytes in base64.
func newToken() string {
	var random [16]byte
	_, _ = cryptorand.Read(random[:]) // it never fails
	return base64.StdEncoding.EncodeToString(random[:])
}

// Close refuses further calls; leases can still be released.
func (l *Locker) Close() error {
	l.closed.Store(true)
	return l.hangUp()
}

// again says whether a lock that failed may succeed when tried again: another client has it,
// or the nodes were too slow for redsync, which allows them 5 % of the TTL.
func again(err error) bool {
	return isTaken(err) || errors.Is(err, peer.ErrFailed) || isLate(err)
}

func isLate(err error) bool {
	var late net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) && late.Timeout()
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

// ValidUntil returns the end that redsync computes, less drift.
func (held *lease) ValidUntil() time.Time { return held.until.Get() }

// Release unlocks the mutex.
func (held *lease) Release(ctx context.Context) error {
	ok, err := held.mutex.UnlockContext(ctx)
	return held.outcome(ctx, "unlock", ok, err)
}

// Extend extends the mutex through a new one with that expiry.
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
	return fmt.Errorf("%s %q: %w", what, held.mutex.Name(), indeterminate.Because(ctx, err))
}
