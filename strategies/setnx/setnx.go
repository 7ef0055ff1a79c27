// Package setnx is the lock that everybody writes first: SETNX takes it, a GET
// that looks whose it is and a DEL give it back, and whoever finds it taken
// sleeps a fixed while and tries again. It is here to be measured, not to be used.
//
// setnx.md has the rest: what it guarantees, what breaks it, and what it costs.
package setnx

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/owner"
)

//go:embed setnx.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:      doc,
		Name:     "setnx",
		Summary:  "SETNX without TTL, polled; GET then DEL to release: the naive lock",
		Claims:   strategies.Claims{Exclusion: true},
		Capacity: 1,
		Nodes:    1,
		Caveat: "a holder that crashes blocks the lock for ever; " +
			"a release may delete somebody else's lock once anything but a holder has removed the key",
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"setnx", "get", "del"},
		},
	}, Defaults(), Open)
}

// Options choose how waiters poll.
type Options struct {
	Delay time.Duration `opt:"delay" help:"sleep between two tries"`
}

// Defaults returns a delay of 10 ms.
func Defaults() Options { return Options{Delay: 10 * time.Millisecond} }

// Validate rejects a delay that is not positive.
func (o Options) Validate() error {
	if o.Delay <= 0 {
		return fmt.Errorf("delay must be positive, not %v", o.Delay)
	}
	return nil
}

// Locker polls one Redis node.
type Locker struct {
	config  goredis.Config
	options Options
	client  redis.UniversalClient
	owners  *owner.Names
	closed  atomic.Bool

	sleepers pause.Sleepers
}

// Open returns a Locker on the first node. It does not talk to Redis yet. The config's TTL
// has no effect.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("setnx: %w", err)
	}
	return &Locker{config: config, options: options, client: config.Nodes[0].Client, owners: owner.New()}, nil
}

// Acquire tries, and sleeps between tries, until the lock is held or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.TryAcquire(ctx, key)
	if !errors.Is(err, strategies.ErrHeld) {
		return held, err
	}
	for {
		l.sleepers.Sleep(ctx.Done(), l.options.Delay)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("poll %q: %w", l.config.Key(key), err)
		}
		held, err := l.TryAcquire(ctx, key)
		l.config.Probe.Wake(err == nil)
		if !errors.Is(err, strategies.ErrHeld) {
			return held, err
		}
	}
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	held := &lease{locker: l, name: l.config.Key(key), token: l.owners.Next()}
	l.config.Probe.Attempt()
	taken, err := l.client.Do(ctx, "SETNX", held.name, held.token).Bool() // client.SetNX sends a SET
	switch {
	case err == nil && taken:
		return held, nil
	case err == nil:
		return nil, strategies.ErrHeld
	}
	if indeterminate.MayHaveRun(err) {
		settle, done := indeterminate.Settle(ctx)
		defer done()
		// If this fails too, the lock is blocked for ever: there is no TTL.
		_ = held.Release(settle)
	}
	return nil, fmt.Errorf("setnx %q: %w", held.name, indeterminate.Because(ctx, err))
}

// Close refuses further calls; leases can still be released.
func (l *Locker) Close() error {
	l.closed.Store(true)
	l.sleepers.Close()
	return nil
}

// lease is a key that holds the owner's token.
type lease struct {
	locker      *Locker
	name, token string
}

// Release looks whether the key holds the token, and then deletes it, whatever it
// holds by then.
func (held *lease) Release(ctx context.Context) error {
	client := held.locker.client
	token, err := client.Get(ctx, held.name).Result()
	switch {
	case errors.Is(err, redis.Nil), err == nil && token != held.token:
		return strategies.ErrNotHeld
	case err != nil:
		return fmt.Errorf("look whose %q is: %w", held.name, indeterminate.Because(ctx, err))
	}
	deleted, err := client.Del(ctx, held.name).Result()
	if err != nil {
		return fmt.Errorf("delete %q: %w", held.name, indeterminate.Because(ctx, err))
	}
	if deleted == 0 {
		return strategies.ErrNotHeld
	}
	return nil
}
