// Package pubsub is Redisson's RLock, wire-compatible with it: a hash of the owner and how
// often it holds, and a channel on which a release is told.
//
//	locker, err := pubsub.New(client, lock.TTL(10*time.Second))
//	lease, err := locker.Acquire(ctx, "order:17", lock.Wait(2*time.Second))
//	defer lease.Release(context.WithoutCancel(ctx))
//
// It guarantees exclusion while a lease is valid, and frees a dead holder's lock after the
// TTL. Newcomers may barge in; turns are even among the waiters of a process, not between
// processes. Through Open the same owner may acquire again (AcquireAs), and the watchdog
// renews a lease every TTL/3 until it is released, unless a TTL of its own was asked for.
//
// What breaks it: a holder that works on after Lost or ValidUntil; a failover to a replica
// that had not seen the hash; a subscription connection that is dead without being closed,
// which costs a PTTL for each wake-up until TCP notices; on a cluster processes that set
// Sharded differently, which hear of each other's releases only when the PTTL is over. A client
// that retries by itself (MaxRetries other than -1) sends a command again whose answer was lost: an
// acquire that fails then may hold the lock for nobody until the TTL is over, and a release that
// freed the lock may return ErrNotHeld. While Redis has no memory for writes, no lock is released:
// it ends with its TTL.
//
// An uncontended acquire is one EVALSHA (EXISTS, HINCRBY, PEXPIRE inside), a release
// another (HEXISTS, HINCRBY, DEL, PUBLISH): one round trip each. A waiter tries,
// subscribes, tries again, since the release may have come in between, and parks for at
// most the holder's PTTL and its Locker's TTL. A release wakes one waiter of each process,
// which pays one EVALSHA: P processes make P attempts, of which one succeeds. All waiters
// of a process share one connection. An expired lock is told to nobody: waiters look for
// themselves.
package pubsub

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/lock"
)

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
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
