// Package pubsub is Redisson's RLock, wire-compatible with it: a hash of the owner and how
// often it holds, and a channel on which a release is told.
//
// pubsub.md has the rest: what it guarantees, what breaks it, and what it costs.
package pubsub

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed pubsub.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:         doc,
		Name:        "pubsub",
		Summary:     "Redisson RLock: a release is published and wakes one waiter a process",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Reentrant: true},
		Capacity:    1,
		Nodes:       1,
		Libraries:   []strategies.Library{{Language: "Java", Package: "org.redisson:redisson", Call: "getLock"}},
		Connections: strategies.Connections{PerInstance: 1},
		Limits:      []strategies.Limit{strategies.ByRedisClock()},
		Rights:      redisson.LockRights(),
	}), Defaults(), Open)
}

// Options of the lock.
type Options struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
	// On a cluster of Redis 7 or later a release is told by SPUBLISH and heard by SSUBSCRIBE,
	// as in Redisson: only the node with the lock's slot gets it. A process then has a
	// connection for each slot on which it waits, and keeps up to 64 idle ones. On older
	// clusters, or with off, PUBLISH goes to every node. All processes need the same value.
	Sharded  string `opt:"sharded" help:"on a cluster: tell releases by SPUBLISH (on), PUBLISH (off), or SPUBLISH where the servers know it (auto)"`
	Blind    bool   `opt:"blind" help:"do not try again after subscribing: a release that comes in between wakes nobody (unsafe, to be measured)"`
	Pipeline bool   `opt:"pipeline" help:"send the commands of all callers down one connection, gathered into pipelines"`
}

// Defaults are Redisson's: the watchdog runs, sharded is auto.
func Defaults() Options { return Options{Watchdog: true, Sharded: redisson.ShardedAuto} }

// Validate rejects an unknown value of sharded.
func (o Options) Validate() error { return redisson.ValidSharded(o.Sharded) }

// Refine claims the watchdog when it runs, says what blind loses, and adds the pipeline's
// connection.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	info.Caveat = ""
	if o.Blind {
		info.Caveat = "a release between the first try and the subscription wakes nobody: the waiter sleeps until the TTL is over"
	}
	return pipeline.Refine(info, o.Pipeline)
}

// rlock has the methods that all locks of the family share.
type rlock = redisson.Lock

// Locker is one process's side of the lock. Its waiters share a subscription, and its holders
// share a watchdog. It is a strategies.Locker, Trier, Reentrant and Preparer.
type Locker struct {
	*rlock
	hangUp func() error // ends the pipeline
}

// New makes a lock for a service, on one Redis or Redis Cluster, with Defaults. It does not
// talk to Redis yet. Its error joins every error of the options. The caller closes the
// client, after the Locker.
func New(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return NewWith(client, Defaults(), options...)
}

// NewWith is New with other Options than Defaults. It ignores their Watchdog: lock.Watchdog
// has leases renewed.
func NewWith(client redis.UniversalClient, options Options, more ...lock.Option) (*lock.Locker, error) {
	options.Watchdog = false // only for leases without a TTL of their own
	return lock.Open([]redis.UniversalClient{client}, Open, options, more)
}

// Open returns a Locker on the first node. It does not talk to Redis yet.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("pubsub: %w", err)
	}
	client := config.Nodes[0].Client
	line, herald := redisson.NewLine(client, redisson.One), redisson.NewHerald(client, options.Sharded)
	config, hangUp, err := pipeline.Over(config, options.Pipeline)
	if err != nil {
		return nil, fmt.Errorf("pubsub: %w", errors.Join(err, line.Close()))
	}
	return &Locker{redisson.NewLock(config, redisson.RLock{}, line, herald, redisson.Ways{Renew: options.Watchdog, Blind: options.Blind}), hangUp}, nil
}

// Close ends the subscriptions, the watchdog and the pipeline. Leases can still be
// released.
func (l *Locker) Close() error { return errors.Join(l.rlock.Close(), l.hangUp()) }
