// Package redissonspin is Redisson's RSpinLock, wire-compatible with it: the hash of its
// RLock, without a channel. Waiters poll.
//
// redissonspin.md has the rest: what it guarantees, what breaks it, and what it costs.
package redissonspin

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/spin"
)

//go:embed redissonspin.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:      doc,
		Name:     "redisson-spin",
		Summary:  "Redisson RSpinLock: the hash of RLock, polled with its backoff",
		Claims:   strategies.Claims{Exclusion: true, Recovery: true, Reentrant: true},
		Capacity: 1,
		Nodes:    1,
		Limits:   []strategies.Limit{strategies.ByRedisClock()},
		Rights:   redisson.SpinRights(),
	}), Defaults(), Open)
}

// Options of the lock.
type Options struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
}

// Defaults are Redisson's: the watchdog runs.
func Defaults() Options { return Options{Watchdog: true} }

// Refine claims the watchdog when it runs.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	return info
}

// rlock has the methods that all locks of the family share.
type rlock = redisson.Lock

// Locker is one process's side of the lock. Its holders share a watchdog. It is a
// strategies.Locker, Trier, Reentrant and Preparer.
type Locker struct{ *rlock }

// New makes a lock for a service, on one Redis or Redis Cluster, with Defaults. It does not
// talk to Redis yet. Its error joins every error of the options. The caller closes the
// client, after the Locker.
func New(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	with := Defaults()
	with.Watchdog = false // only for leases without a TTL of their own: lock.Watchdog renews
	return lock.Open([]redis.UniversalClient{client}, Open, with, options)
}

// Open returns a Locker on the first node. It does not talk to Redis yet.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("redisson-spin: %w", err)
	}
	line := redisson.NewPolling(func() func() time.Duration { return backoff().Sleeps(rand.Int64N) })
	herald := redisson.NewHerald(config.Nodes[0].Client, redisson.ShardedOff)
	// Blind: a waiter always sleeps between two tries.
	ways := redisson.Ways{Renew: options.Watchdog, Blind: true}
	return &Locker{redisson.NewLock(config, redisson.RSpinLock{}, line, herald, ways)}, nil
}

// backoff is Redisson's.
func backoff() spin.Options {
	return spin.Options{Backoff: spin.Redisson, Base: time.Millisecond, Cap: 128 * time.Millisecond}
}
