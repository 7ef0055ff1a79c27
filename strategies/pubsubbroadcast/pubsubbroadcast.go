// Package pubsubbroadcast is the lock of package pubsub as many write it: every waiter
// subscribes for itself, on a connection of its own, and a release wakes all of them.
// It is the herd in full, here to be compared with package pubsub.
//
// pubsubbroadcast.md has the rest: what it guarantees, what breaks it, and what it costs.
package pubsubbroadcast

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

//go:embed pubsubbroadcast.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:         doc,
		Name:        "pubsub-broadcast",
		Summary:     "pubsub where every waiter subscribes for itself: a release wakes all",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Reentrant: true},
		Capacity:    1,
		Nodes:       1,
		Connections: strategies.Connections{PerWaiter: 1},
		Limits:      []strategies.Limit{strategies.ByRedisClock()},
		Rights:      redisson.LockRights(),
	}), Defaults(), Open)
}

// Options of the lock.
type Options struct {
	Watchdog bool   `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
	Sharded  string `opt:"sharded" help:"on a cluster: tell releases by SPUBLISH (on), PUBLISH (off), or SPUBLISH where the servers know it (auto)"`
}

// Defaults are those of package pubsub: the watchdog runs, sharded is auto.
func Defaults() Options { return Options{Watchdog: true, Sharded: redisson.ShardedAuto} }

// Validate rejects an unknown value of sharded.
func (o Options) Validate() error { return redisson.ValidSharded(o.Sharded) }

// Refine adds the claim of a watchdog where the options start one.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	return info
}

// lock has the methods that all locks of the family share.
type lock = redisson.Lock

// Locker is one process's side of the lock. It is a strategies.Locker, Trier,
// Reentrant and Preparer.
type Locker struct{ *lock }

// Open returns a Locker on the first node. It does not talk to Redis yet.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("pubsub-broadcast: %w", err)
	}
	herd, err := newHerd(config.Nodes[0], config.Callers)
	if err != nil {
		return nil, fmt.Errorf("pubsub-broadcast: %w", err)
	}
	herald := redisson.NewHerald(config.Nodes[0].Client, options.Sharded)
	return &Locker{redisson.NewLock(config, redisson.RLock{}, herd, herald, redisson.Ways{Renew: options.Watchdog})}, nil
}
