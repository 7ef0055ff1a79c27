// Package blpop is a lock whose waiters block in Redis itself, as in python-redis-lock. The lock is the string KEY with
// the owner's token. The set {KEY}:waiters contains the tokens of the waiters, and the list {KEY}:signal contains the
// signal of a release.
//
//  1. Acquire runs one script, which sends SET KEY token NX PX. If the lock is taken, the script adds the token to
//     {KEY}:waiters by SADD, renews the set's TTL by PEXPIRE, and returns the PTTL of KEY.
//  2. A waiter blocks in BLPOP {KEY}:signal, on a separate connection and for at most the PTTL. It then runs the
//     script of step 1 again. When the waiter takes the lock, the script removes its token from the set by SREM. If it
//     was the last waiter, the script deletes the signal.
//  3. Release runs one script, which deletes KEY if GET returns the owner's token. If the set has waiters and the list
//     is empty, the script then pushes a signal by RPUSH.
//
// Redis delivers the signal to the client that has blocked longest, in any process. An expired lock sends no signal:
// the BLPOP of each waiter times out.
//
// blpop.md describes guarantees, costs and failure modes.
package blpop

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

//go:embed blpop.md
var doc string

// Strategy returns the Info, the options and the constructor of the lock, for registration as blpop.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:         doc,
		Name:        "blpop",
		Summary:     "a release signals the longest waiter, which blocks in BLPOP",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true},
		Keys:        []string{"{key}", "{key}:waiters", "{key}:signal", "{key}:echo:*"},
		Capacity:    1,
		Nodes:       1,
		NoCluster:   noCluster,
		Connections: strategies.Connections{PerInstance: 1, PerWaiter: 1},
		Limits:      []strategies.Limit{strategies.ByRedisClock()},
		Rights: strategies.Rights{
			Keys: []string{"{key}"},
			Commands: []string{
				"set", "sadd", "srem", "rpush", "blpop", "exists", "pttl", "client|id", "client|unblock",
				"ping", "eval", "evalsha", "get", "del", "pexpire", "script|load",
			},
		},
	}), Defaults(), Open)
}

// The suffixes of a lock's keys other than KEY: the set of waiters, the list from which the waiters pop signals, and
// the list of echoes, which exists only briefly.
const (
	waiters = "waiters"
	signal  = "signal"
	echo    = "echo"
)

const noCluster = "a cluster's connections cannot be unblocked by id"

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string
	//go:embed abandon.lua
	abandonSource string

	acquireScript = redis.NewScript(acquireSource)
	releaseScript = redis.NewScript(releaseSource)
	abandonScript = redis.NewScript(abandonSource)
)

// Options are the options that a user can set, as in blpop:signal=always.
type Options struct {
	OneKey bool   `opt:"one-key" help:"the lock and the signal are one key, which cannot be both a string and a list: acquiring fails with WRONGTYPE"`
	Signal string `opt:"signal" help:"when a release signals: waiting (a client waits and no signal is left), or always, as much published code does (signals pile up; to be measured)"`
}

// These are the values of the option signal, which determines when a release pushes a signal.
const (
	signalWaiting = "waiting"
	signalAlways  = "always"
)

// Defaults returns the Options with two separate keys for lock and signal, and with signals only if a client waits.
func Defaults() Options { return Options{Signal: signalWaiting} }

// Validate rejects an unknown value of signal. The empty string means waiting.
func (o Options) Validate() error {
	if o.Signal != "" && o.Signal != signalWaiting && o.Signal != signalAlways {
		return fmt.Errorf("signal must be %s or %s, not %q", signalWaiting, signalAlways, o.Signal)
	}
	return nil
}

// Refine sets the caveats of one-key and signal=always. With one-key, it removes the claim of exclusion.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Caveat = ""
	if o.Signal == signalAlways {
		info.Caveat = "a release without a waiter leaves a signal, which makes a later waiter try in vain"
	}
	if o.OneKey {
		info.Claims.Exclusion, info.Format = false, "blpop with one key"
		info.Caveat = "SET and BLPOP on one key are a type error: a waiter fails, and its clean-up deletes the " +
			"lock in place of the signal"
	}
	return info
}

// Locker acquires locks for all goroutines of one process, and owns the connections on which they block.
type Locker struct {
	config   goredis.Config
	options  Options
	client   redis.UniversalClient
	blocking *connections
	owners   *token.Names
	closed   atomic.Bool
	releases pending.Releases
}

// Open returns a Locker on the first node. It returns an error if the node is a cluster. It sends no command to Redis.
func Open(config goredis.Config, options Options) (*Locker, error) {
	node, err := goredis.Server(config, "blpop", noCluster)
	if err := errors.Join(err, options.Validate()); err != nil {
		return nil, err
	}
	l := &Locker{config: config, options: options, client: node.Client, owners: token.NewNames()}
	l.blocking = newConnections(node, &l.releases.Calls)
	return l, nil
}

// Prepare loads the scripts and opens a blocking connection for each expected caller.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	if err := goredis.Load(ctx, l.client, acquireScript, releaseScript); err != nil {
		return err
	}
	return l.blocking.open(ctx, l.config.Callers)
}

// Acquire waits until the caller holds the lock or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, taken, left, err := l.begin(ctx, key, "first")
	if err == nil && !taken {
		err = l.wait(ctx, held, left)
	}
	if err != nil {
		return nil, err
	}
	return held, nil
}

// TryAcquire makes one attempt, and returns ErrHeld if another client holds the lock.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, taken, _, err := l.begin(ctx, key, "try")
	if err != nil {
		return nil, err
	}
	if !taken {
		return nil, strategies.ErrHeld
	}
	return held, nil
}

// Close closes the blocking connections. Leases can still be released. Close waits at most two seconds for releases to
// which Redis has not replied.
func (l *Locker) Close() error {
	l.closed.Store(true)
	err := l.blocking.close()
	l.releases.Close()
	return err
}

// lease is a caller's request for a lock. Once an attempt has succeeded, it is the Lease that Acquire returns.
type lease struct {
	token.Lease
	keys    []string // the lock, its waiters and their signal
	locker  *Locker
	once    sync.Once
	release pending.Release
}

// Release frees the lock if the caller still holds it, and signals a waiter. After an error other than ErrNotHeld the
// release is repeated in the background.
func (held *lease) Release(ctx context.Context) error {
	held.once.Do(func() {
		held.release.TTL = held.locker.config.TTL
		held.release.Send = func(ctx context.Context) error {
			freed, err := held.run(ctx, held.Token, releaseScript, "").Bool()
			if err == nil && !freed {
				return strategies.ErrNotHeld
			}
			return err
		}
	})
	err := held.locker.releases.Release(ctx, &held.release)
	if err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		return fmt.Errorf("release %q: %w", held.Name, indeterminate.Because(ctx, err))
	}
	return err
}

// abandon removes everything in Redis that belongs to a caller's failed attempt, at once or in the background. asked is
// the field Asked of pending.Release. The caller gets a new token, because its next attempt may run before the removal.
func (held *lease) abandon(ctx context.Context, asked <-chan struct{}) {
	name := held.Token
	held.Token = held.locker.owners.Next()
	held.locker.releases.GiveBack(ctx, &pending.Release{
		Send:  func(ctx context.Context) error { return held.run(ctx, name, abandonScript, "").Err() },
		Asked: asked,
		TTL:   3 * held.locker.config.TTL, // the same time as for the set of waiters
	})
}

// run runs a script on the lock's keys. name is the caller's token. mode is an argument that only the acquire script
// uses.
func (held *lease) run(ctx context.Context, name string, script *redis.Script, mode string) *redis.Cmd {
	return script.Run(ctx, held.Client, held.keys, name, held.locker.config.TTL.Milliseconds(), mode,
		held.locker.options.Signal)
}

// begin makes the first attempt. If another client holds the lock, taken is false, and left is the time for which the
// caller may block. mode is an argument of the acquire script.
func (l *Locker) begin(ctx context.Context, key, mode string) (held *lease, taken bool, left time.Duration,
	err error,
) {
	if l.closed.Load() {
		return nil, false, 0, strategies.ErrClosed
	}
	name := l.config.Key(key)
	if err := goredis.CheckKey(name, ":"+waiters, ":"+signal); err != nil {
		return nil, false, 0, fmt.Errorf("acquire: %w", err)
	}
	// The keys are the lock, its waiters and their signal, all in one hash slot.
	keys := []string{name, redisson.Suffixed(name, waiters), redisson.Suffixed(name, signal)}
	if l.options.OneKey {
		keys[2] = name
	}
	held = &lease{
		Lease: token.Lease{Client: l.client, Releases: &l.releases, Name: name, Token: l.owners.Next()},
		keys:  keys, locker: l,
	}
	taken, left, err = l.try(ctx, held, mode)
	return held, taken, left, err
}

// wait blocks for a signal and tries again until the caller holds the lock or ctx ends. left is the longest time until
// the next attempt. After an error, wait removes the caller from the set of waiters, if necessary in the background.
func (l *Locker) wait(ctx context.Context, held *lease, left time.Duration) error {
	l.blocking.enter(held.Name)
	defer l.blocking.leave()
	var c *connection
	defer func() {
		if c != nil {
			l.blocking.put(c)
		}
	}()
	for {
		if c == nil {
			var err error
			if c, err = l.blocking.take(ctx); err != nil {
				held.abandon(ctx, nil)
				return fmt.Errorf("wait for %q: %w", held.Name, indeterminate.Because(ctx, err))
			}
		}
		err := c.block(ctx, l.client, l.blocking.calls, held.keys[2], left)
		if err != nil {
			l.blocking.drop(c)
			c = nil
		}
		if ended := ctx.Err(); ended != nil {
			held.abandon(ctx, nil)
			return fmt.Errorf("wait for %q: %w", held.Name, ended)
		}
		if _, refused := errors.AsType[redis.Error](err); refused {
			held.abandon(ctx, nil)
			return fmt.Errorf("wait for %q: %w", held.Name, err)
		}
		// The waiter tries again after a signal, after the end of the PTTL, and after a broken connection.
		var taken bool
		taken, left, err = l.try(ctx, held, "again")
		l.config.Probe.Wake(taken)
		if taken || err != nil {
			return err
		}
	}
}

// try makes one attempt. If another client holds the lock, taken is false, and left is the time for which the caller
// may block. After an error, the caller does not hold the lock. If Redis may have executed the attempt, try also
// abandons it.
func (l *Locker) try(ctx context.Context, held *lease, mode string) (taken bool, left time.Duration,
	err error,
) {
	l.config.Probe.Attempt()
	held.Until.Set(time.Now().Add(l.config.TTL))
	name := held.Token
	ms, err := bounded.Get(ctx, &l.releases.Calls, func() (int64, error) {
		return held.run(ctx, name, acquireScript, mode).Int64()
	})
	switch {
	case errors.Is(err, redis.Nil) && !time.Now().Before(held.ValidUntil()): // the lease expired before the reply arrived
		held.abandon(ctx, nil)
		if mode == "try" {
			return false, 0, fmt.Errorf("acquire %q: %w", held.Name, validity.ErrLate)
		}
		return false, time.Millisecond, nil
	case errors.Is(err, redis.Nil):
		return true, 0, nil
	case err == nil && ms < 0: // no TTL, so another program has set the key
		return false, l.config.TTL, nil
	case err == nil:
		// In the last millisecond of the TTL, ms is 0, but BLPOP with the timeout 0 blocks forever.
		return false, time.Duration(max(ms, 1)) * time.Millisecond, nil
	}
	if asked := pending.Asked(err); asked != nil || mode == "again" {
		held.abandon(ctx, asked)
	}
	return false, 0, fmt.Errorf("acquire %q: %w", held.Name, indeterminate.Because(ctx, err))
}
