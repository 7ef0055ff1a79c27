// Package polled provides the locks whose waiters poll: setnx, setnx-expire and spin. Each lock is one string KEY with
// the owner's token.
//
//  1. Acquire sends SETNX KEY token (setnx), SETNX KEY token and then PEXPIRE KEY (setnx-expire), or one SET KEY token
//     NX PX (spin).
//  2. A waiter sleeps and tries again. The sleep is fixed in setnx and setnx-expire, and a backoff in spin.
//  3. Release deletes KEY if its value is the owner's token, by GET and then DEL (setnx) or by one script with GET and
//     DEL (setnx-expire and spin). The option `check` of setnx-expire and
//     the option `release` of spin select another release.
//
// A release wakes no waiter. The first client that tries after the release takes the lock.
//
// setnx.md, setnx-expire.md and spin.md describe guarantees, costs and failure modes.
package polled

import (
	"context"
	_ "embed" // the texts
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

var (
	//go:embed setnx.md
	setNXDoc string
	//go:embed setnx-expire.md
	setNXExpireDoc string
	//go:embed spin.md
	spinDoc string
)

// Strategies returns setnx, setnx-expire and spin, for registration under their names.
func Strategies() []strategies.Strategy {
	expire := SetNXExpireOptions{Delay: 10 * time.Millisecond, Check: atomically}
	return []strategies.Strategy{
		strategies.Define(strategies.Info{
			Doc: setNXDoc, Name: "setnx", Capacity: 1, Nodes: 1,
			Summary: "SETNX without TTL, polled; GET then DEL to release: the naive lock",
			Claims:  strategies.Claims{Exclusion: true},
			Caveat: "a holder that crashes blocks the lock for ever; " +
				"a release may delete another client's lock once anything but a holder has removed the key",
			Rights: rights("setnx", "get", "del"),
		}, SetNXOptions{10 * time.Millisecond}, openSetNX),
		strategies.Define(expire.Refine(strategies.Info{
			Doc: setNXExpireDoc, Name: "setnx-expire", Capacity: 1, Nodes: 1,
			Summary: "SETNX, then EXPIRE as a second command, polled",
			Rights:  rights("setnx", "eval", "evalsha", "get", "del", "pexpire", "script|load"),
		}), expire, openSetNXExpire),
		strategies.Define(strategies.Info{
			Doc: spinDoc, Name: "spin", Capacity: 1, Nodes: 1, Format: "SET NX PX",
			Summary: "SET NX PX, polled with backoff",
			Claims:  strategies.Claims{Exclusion: true, Recovery: true},
			Limits:  []strategies.Limit{strategies.ByRedisClock()},
			Rights:  rights("set", "eval", "evalsha", "get", "del", "pexpire", "script|load"),
		}, SpinDefaults(), OpenSpin),
	}
}

func rights(commands ...string) strategies.Rights {
	return strategies.Rights{Keys: []string{"{key}"}, Commands: commands}
}

// protocol defines the properties in which the polled locks differ. Each lock is one key with the owner's token.
type protocol struct {
	name     string
	options  error       // all errors of the options, joined
	backoff  SpinOptions // how a waiter sleeps
	tries    int         // failed attempts after which an acquire ends with an error; 0: no limit
	scripted bool        // a lease is released by a script
	native   bool        // a lease is released by DELEX or DELIFEQ
	shared   bool        // all leases have one token, so a release cannot distinguish them (unsafe)
	// try makes one attempt to get the lock. After an error, the caller does not hold the lock. After validity.ErrLate,
	// the caller may try again.
	try func(ctx context.Context, held *token.Lease, ttl time.Duration) (bool, error)
	// granted converts held to the lease that Acquire returns.
	granted func(held *token.Lease) strategies.Lease
}

// Locker acquires one kind of polled lock on one Redis node, for all goroutines of a process.
type Locker struct {
	protocol
	config   goredis.Config
	client   redis.UniversalClient
	owner    func() string // the token of the next lease
	closed   atomic.Bool
	sleepers pause.Sleepers
	releases pending.Releases
	deletes  *token.Native // the release command; nil unless the protocol is native
}

// open returns a Locker on the first node. It sends no command to Redis.
func open(config goredis.Config, k protocol) (*Locker, error) {
	if err := errors.Join(config.Validate(1), k.options); err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	owner := token.NewNames().Next
	if k.shared {
		one := owner()
		owner = func() string { return one }
	}
	l := &Locker{protocol: k, config: config, client: config.Nodes[0].Client, owner: owner}
	if k.native {
		l.deletes = new(token.Native)
	}
	return l, nil
}

// Prepare loads the release script, if the lock has one. For a release by a command, it finds out which command the
// server has.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	switch {
	case l.native:
		unused := l.config.Key(":" + l.owner()) // a key that belongs to no lock
		if _, err := l.lease(unused).Free(ctx); err != nil {
			err = goredis.TooOld(ctx, l.client, err, l.name+":release="+byCommand, native)
			return fmt.Errorf("prepare: %w", err)
		}
		return nil
	case l.scripted:
		return token.Load(ctx, l.client)
	}
	return nil
}

// Acquire tries, and sleeps between tries, until the caller holds the lock or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, l.config.TTL, false)
}

// TryAcquire makes one attempt, and returns ErrHeld if another client holds the lock.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, l.config.TTL, true)
}

// Close makes further acquires fail with ErrClosed. Leases can still be released. Close waits at most two seconds for
// releases to which Redis has not replied.
func (l *Locker) Close() error {
	l.closed.Store(true)
	l.sleepers.Close()
	l.releases.Close()
	return nil
}

// acquire makes one attempt. Unless once is true, it then polls until the caller holds the lock or ctx ends.
func (l *Locker) acquire(ctx context.Context, key string, ttl time.Duration, once bool) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	name := l.config.Key(key)
	ttl, err := validity.TTL(ttl)
	if err != nil {
		return nil, fmt.Errorf("set %q: %w", name, err)
	}
	held := l.lease(name)
	l.config.Probe.Attempt()
	got, err := l.try(ctx, held, ttl)
	if !once && !got && validity.UnlessLate(err) == nil {
		return l.wait(ctx, name, ttl)
	}
	switch {
	case err != nil:
		return nil, err
	case !got:
		return nil, strategies.ErrHeld
	}
	return l.granted(held), nil
}

// lease returns a lease for the next attempt. The lease has a new token, unless the option token makes all leases of
// the Locker share one token.
func (l *Locker) lease(name string) *token.Lease {
	return &token.Lease{
		Client: l.client, Releases: &l.releases, Name: name, Token: l.owner(), Native: l.deletes,
	}
}

// wait sleeps and tries until the caller holds the lock or ctx ends. It returns ErrHeld after l.tries failed attempts.
func (l *Locker) wait(ctx context.Context, name string, ttl time.Duration) (strategies.Lease, error) {
	held := l.lease(name)
	sleep := l.backoff.Sleeps(rand.Int64N)
	for failed := 1; ; failed++ {
		if failed == l.tries {
			return nil, fmt.Errorf("poll %q: %w after %d tries", name, strategies.ErrHeld, failed)
		}
		d := sleep()
		if d > 0 {
			l.sleepers.Sleep(ctx.Done(), d)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("poll %q: %w", name, strategies.WaitEnded(ctx))
			}
		}
		l.config.Probe.Attempt()
		got, err := l.try(ctx, held, ttl)
		if d > 0 {
			l.config.Probe.Wake(got && err == nil)
		}
		switch late := errors.Is(err, validity.ErrLate); {
		case late: // the late lock may be released after the next attempt, which therefore needs another token
			held = l.lease(name)
		case err != nil:
			return nil, err
		case got:
			return l.granted(held), nil
		}
	}
}
