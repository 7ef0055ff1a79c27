// Package redislock adapts github.com/bsm/redislock, through its public interface, to
// compare with.
//
// redislock.md has the rest: what it guarantees, what breaks it, and what it costs.
package redislock

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	peer "github.com/bsm/redislock"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/polled"
)

//go:embed redislock.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:       doc,
		Name:      "redislock",
		Summary:   "bsm/redislock: MSETNX in a script, polled every 100 ms",
		Claims:    strategies.Claims{Exclusion: true, Recovery: true},
		Capacity:  1,
		Nodes:     1,
		BlackBox:  true,
		Library:   "github.com/bsm/redislock",
		Libraries: []strategies.Library{{Language: "Go", Package: "github.com/bsm/redislock", Call: "Client.Obtain"}},
		Limits: []strategies.Limit{
			strategies.ByRedisClock(),
			{Check: "slow answer", Because: "it does not look whether the lease had run out when the answer came"},
		},
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"msetnx", "mget", "getrange", "del", "pexpire", "eval", "evalsha"},
		},
	}, Defaults(), Open)
}

// Options tune redislock.
type Options struct {
	Tuned bool          `opt:"tuned" help:"sleep with full jitter, up to 4 ms at first and 1 s at last, instead of delay"`
	Delay time.Duration `opt:"delay" help:"sleep between tries"`

	Pipeline bool `opt:"pipeline" help:"send the commands of all callers down one connection, gathered into pipelines"`
}

// Defaults returns the options that redislock's documentation uses.
func Defaults() Options { return Options{Delay: 100 * time.Millisecond} }

// Refine adds the pipeline's connection, and how the library is told to sleep.
func (o Options) Refine(info strategies.Info) strategies.Info {
	if o.Tuned {
		info.Libraries = slices.Clone(info.Libraries)
		info.Libraries[0].Call += " with a RetryStrategy (random, up to 4 ms at first and 1 s at last)"
	}
	return pipeline.Refine(info, o.Pipeline)
}

// Validate returns every error, joined.
func (o Options) Validate() error {
	if o.Delay <= 0 {
		return fmt.Errorf("delay must be positive, not %v", o.Delay)
	}
	return nil
}

// retry is how one caller waits.
func (o Options) retry() peer.RetryStrategy {
	if o.Tuned {
		return jitter{tuned.Sleeps(mathrand.Int64N)}
	}
	return peer.LinearBackoff(o.Delay)
}

// tuned is the sleep between the tries of a tuned redislock.
var tuned = polled.SpinOptions{Backoff: polled.FullJitter, Base: 4 * time.Millisecond, Cap: time.Second}

// jitter sleeps as tuned says.
type jitter struct{ sleep func() time.Duration }

// NextBackoff is never 0, which would end the wait.
func (j jitter) NextBackoff() time.Duration { return max(j.sleep(), 1) }

// Locker obtains a redislock.Lock for each lease.
type Locker struct {
	config  goredis.Config
	options Options
	peer    *peer.Client
	hangUp  func() error // ends the pipeline
	closed  atomic.Bool
}

// Open returns a Locker on the first node. It does not talk to Redis yet.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	config, hangUp, err := pipeline.Over(config, options.Pipeline)
	if err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	return &Locker{config: config, options: options, peer: peer.New(config.Nodes[0].Client), hangUp: hangUp}, nil
}

// Acquire obtains a lock of that name.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	if _, ends := ctx.Deadline(); !ends {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, never)
		defer done()
	}
	return l.obtain(ctx, key, l.options.retry())
}

// never is how long redislock may wait if the caller sets no deadline.
const never = 100 * 365 * 24 * time.Hour

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.obtain(ctx, key, peer.NoRetry())
	if errors.Is(err, peer.ErrNotObtained) && ctx.Err() == nil {
		return nil, strategies.ErrHeld
	}
	return held, err
}

// obtain waits as retry says.
func (l *Locker) obtain(ctx context.Context, key string, retry peer.RetryStrategy) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	name, options := l.config.Key(key), &peer.Options{RetryStrategy: retry, Token: newToken()}
	lock, err := l.peer.Obtain(ctx, name, l.config.TTL, options)
	if err == nil {
		return &lease{lock}, nil
	}
	if !errors.Is(err, peer.ErrNotObtained) && indeterminate.MayHaveRun(err) {
		l.takeBack(ctx, name, options.Token)
	}
	return nil, fmt.Errorf("obtain %q: %w", name, indeterminate.Because(ctx, err))
}

// takeBack releases what a try may have got. An Obtain with the same token succeeds if the
// token has the lock already.
func (l *Locker) takeBack(ctx context.Context, name, token string) {
	settle, done := indeterminate.Settle(ctx)
	defer done()
	lock, err := l.peer.Obtain(settle, name, l.config.TTL, &peer.Options{Token: token})
	if err == nil {
		_ = lock.Release(settle) // if it fails, the TTL frees the lock
	}
}

// newToken returns what redislock makes by itself: 16 random bytes in base64.
func newToken() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// Close refuses further calls; leases can still be released.
func (l *Locker) Close() error {
	l.closed.Store(true)
	return l.hangUp()
}

// lease is a lock obtained.
type lease struct{ lock *peer.Lock }

// Release releases the lock.
func (held *lease) Release(ctx context.Context) error {
	return held.outcome(ctx, "release", held.lock.Release(ctx))
}

// Extend refreshes the lock.
func (held *lease) Extend(ctx context.Context, ttl time.Duration) error {
	return held.outcome(ctx, "refresh", held.lock.Refresh(ctx, ttl, nil))
}

func (held *lease) outcome(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, peer.ErrLockNotHeld), errors.Is(err, peer.ErrNotObtained):
		return strategies.ErrNotHeld
	}
	return fmt.Errorf("%s %q: %w", what, held.lock.Key(), indeterminate.Because(ctx, err))
}
