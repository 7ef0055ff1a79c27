// Package setnxexpire is the lock that gives SETNX a TTL by a second command. It
// is here to be measured, not to be used.
//
// setnxexpire.md has the rest: what it guarantees, what breaks it, and what it costs.
package setnxexpire

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
	"github.com/lockbench/lockbench/strategies/internal/token"
)

//go:embed setnxexpire.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:      doc,
		Name:     "setnx-expire",
		Summary:  "SETNX, then EXPIRE as a second command, polled",
		Capacity: 1,
		Nodes:    1,
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"setnx", "eval", "evalsha", "get", "del", "pexpire", "script|load"},
		},
	}), Defaults(), Open)
}

// How a release checks whose lock it is.
const (
	Atomic   = "true"  // by a script that compares and deletes
	Separate = "get"   // by a GET, and then a DEL
	Never    = "false" // not at all
)

// Options choose how waiters poll and whether a release checks whose lock it is.
type Options struct {
	Delay time.Duration `opt:"delay" help:"sleep between two tries"`
	Check string        `opt:"check" help:"delete the lock only if it is still one's own (true), the same by GET and then DEL (get), or whosever it is (false)"`
}

// Defaults returns a delay of 10 ms and a checked release, so that nothing is wrong but the
// two commands of an acquire.
func Defaults() Options { return Options{Delay: 10 * time.Millisecond, Check: Atomic} }

// Validate returns every error, joined.
func (o Options) Validate() error {
	var problems []error
	if o.Delay <= 0 {
		problems = append(problems, fmt.Errorf("delay must be positive, not %v", o.Delay))
	}
	if o.Check != Atomic && o.Check != Separate && o.Check != Never {
		problems = append(problems, fmt.Errorf("check is %s, %s or %s, not %q", Atomic, Separate, Never, o.Check))
	}
	return errors.Join(problems...)
}

// Refine claims exclusion only for a release that compares and deletes in one step.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Claims.Exclusion = o.Check == Atomic
	info.Caveat = "a crash between SETNX and EXPIRE blocks the lock for ever"
	if o.Check != Atomic {
		info.Caveat += "; a late release deletes somebody else's lock"
	}
	return info
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

// Open returns a Locker on the first node. It does not talk to Redis yet.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("setnx-expire: %w", err)
	}
	return &Locker{config: config, options: options, client: config.Nodes[0].Client, owners: owner.New()}, nil
}

// Prepare loads the release script.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	return token.Load(ctx, l.client)
}

// Acquire tries, and sleeps between tries, until the lock is held or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.wait(ctx, key)
	if err == nil {
		err = held.limit(ctx)
	}
	if err != nil {
		return nil, err
	}
	return held, nil
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.try(ctx, key)
	if err == nil {
		err = held.limit(ctx)
	}
	if err != nil {
		return nil, err
	}
	return held, nil
}

// Close refuses further calls; leases can still be released.
func (l *Locker) Close() error {
	l.closed.Store(true)
	l.sleepers.Close()
	return nil
}

// wait polls until a SETNX has taken the lock.
func (l *Locker) wait(ctx context.Context, key string) (*lease, error) {
	held, err := l.try(ctx, key)
	if !errors.Is(err, strategies.ErrHeld) {
		return held, err
	}
	for {
		l.sleepers.Sleep(ctx.Done(), l.options.Delay)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("poll %q: %w", l.config.Key(key), err)
		}
		held, err := l.try(ctx, key)
		l.config.Probe.Wake(err == nil)
		if !errors.Is(err, strategies.ErrHeld) {
			return held, err
		}
	}
}

// try sends the first of the two commands.
func (l *Locker) try(ctx context.Context, key string) (*lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	held := &lease{locker: l, key: token.Lease{Client: l.client, Name: l.config.Key(key), Token: l.owners.Next()}}
	l.config.Probe.Attempt()
	taken, err := l.client.Do(ctx, "SETNX", held.key.Name, held.key.Token).Bool() // client.SetNX sends a SET
	switch {
	case err == nil && taken:
		return held, nil
	case err == nil:
		return nil, strategies.ErrHeld
	}
	if indeterminate.MayHaveRun(err) {
		held.key.GiveBack(ctx) // if that fails too, the lock is blocked for ever
	}
	return nil, fmt.Errorf("setnx %q: %w", held.key.Name, indeterminate.Because(ctx, err))
}

// lease is a key that holds the owner's token. It cannot be extended.
type lease struct {
	locker *Locker
	key    token.Lease
}

// limit sends the second of the two commands. After an error the lock is not held.
func (held *lease) limit(ctx context.Context) error {
	ttl := held.locker.config.TTL.Truncate(time.Millisecond) // EXPIRE itself knows only seconds
	held.key.Until.Set(time.Now().Add(ttl))
	limited, err := held.key.Client.PExpire(ctx, held.key.Name, ttl).Result()
	switch {
	case err != nil:
		held.key.GiveBack(ctx) // if that fails too, the lock is blocked for ever
		return fmt.Errorf("limit %q: %w", held.key.Name, indeterminate.Because(ctx, err))
	case !limited:
		return fmt.Errorf("limit %q: %w: somebody has deleted it", held.key.Name, strategies.ErrNotHeld)
	}
	return nil
}

// ValidUntil returns the moment before the PEXPIRE was sent, plus the TTL.
func (held *lease) ValidUntil() time.Time { return held.key.ValidUntil() }

// Release deletes the key if it still holds the token, or without a check.
func (held *lease) Release(ctx context.Context) error {
	var freed int64
	var err error
	client, name := held.key.Client, held.key.Name
	switch held.locker.options.Check {
	case Atomic:
		return held.key.Release(ctx)
	case Separate:
		var found string
		if found, err = client.Get(ctx, name).Result(); errors.Is(err, redis.Nil) || err == nil && found != held.key.Token {
			return strategies.ErrNotHeld
		}
		if err == nil { // by now another may have the lock
			freed, err = client.Del(ctx, name).Result()
		}
	default:
		freed, err = client.Del(ctx, name).Result()
	}
	if err != nil {
		return fmt.Errorf("release %q: %w", name, indeterminate.Because(ctx, err))
	}
	if freed == 0 {
		return strategies.ErrNotHeld
	}
	return nil
}
