// Package redisson has Redisson's locks that publish a release, wire-compatible with them: its
// RLock, RFairLock and RFencedLock, and the RLock as many write it, without a shared
// subscription. They are one lock in four kinds.
//
// The .md files have the rest of each: what it guarantees, what breaks it, and what it costs.
package redisson

import (
	"embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed *.md
var docs embed.FS

// The names of the kinds.
const (
	pubsub    = "pubsub"
	broadcast = "pubsub-broadcast"
	fair      = "fair"
	fenced    = "fenced"
)

// Strategies describes the four kinds, to be registered and opened by name.
func Strategies() []strategies.Strategy {
	return []strategies.Strategy{
		define(strategies.Info{
			Name:        pubsub,
			Summary:     "Redisson RLock: a release is published and wakes one waiter a process",
			Libraries:   java("getLock"),
			Connections: strategies.Connections{PerInstance: 1},
		}, nil, nil, PubSubDefaults(), OpenPubSub),
		define(strategies.Info{
			Name:        broadcast,
			Summary:     "pubsub where every waiter subscribes for itself: a release wakes all",
			Connections: strategies.Connections{PerWaiter: 1},
		}, nil, nil, Defaults(), OpenPubSubBroadcast),
		define(strategies.Info{
			Name:        fair,
			Summary:     "Redisson RFairLock: a queue in Redis, a release is published to its head",
			Claims:      strategies.Claims{FIFO: true},
			Libraries:   java("getFairLock"),
			Connections: strategies.Connections{PerInstance: 1},
			Limits: []strategies.Limit{{
				Check: "late commands",
				Because: "an acquire that comes late waits at the head of the queue for nobody, until wait-timeout " +
					"is over",
			}},
		}, []string{queuePrefix, deadlinesPrefix}, queueCommands, FairDefaults(), OpenFair),
		define(strategies.Info{
			Name:        fenced,
			Summary:     "Redisson RFencedLock: pubsub, plus a token that only grows",
			Assumes:     "the server keeps its data",
			Claims:      strategies.Claims{Fencing: true},
			Persistent:  []string{tokenPrefix + ":{key}"},
			Libraries:   java("getFencedLock"),
			Connections: strategies.Connections{PerInstance: 1},
		}, []string{tokenPrefix}, []string{"incr"}, Defaults(), OpenFenced),
	}
}

func java(call string) []strategies.Library {
	return []strategies.Library{{Language: "Java", Package: "org.redisson:redisson", Call: call}}
}

// define adds what all kinds have in common. A kind may have keys beside the lock's, with those
// prefixes, and commands beside the plain lock's.
func define[O strategies.Refiner](
	info strategies.Info, prefixes, commands []string, defaults O, open func(goredis.Config, O) (*Locker, error),
) strategies.Strategy {
	text, err := docs.ReadFile(info.Name + ".md")
	if err != nil {
		panic(err) // it is embedded
	}
	info.Doc, info.Capacity, info.Nodes = string(text), 1, 1
	info.Claims.Exclusion, info.Claims.Recovery, info.Claims.Reentrant = true, true, true
	info.Limits = append([]strategies.Limit{strategies.ByRedisClock()}, info.Limits...)
	info.Keys, info.Rights = []string{"{key}"}, redisson.LockRights(commands...)
	for _, prefix := range prefixes {
		info.Keys = append(info.Keys, prefix+":{key}")
		info.Rights.Keys = append(info.Rights.Keys, prefix+":*{key}")
	}
	return strategies.Define(defaults.Refine(info), defaults, open)
}

// Options are those of every kind, and all that fenced and pubsub-broadcast have.
type Options struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
	// On a cluster of Redis 7 or later a release is told by SPUBLISH and heard by SSUBSCRIBE,
	// as in Redisson: only the node with the lock's slot gets it. A process then has a
	// connection for each slot on which it waits, and keeps up to 64 idle ones. On older
	// clusters, or with off, PUBLISH goes to every node. All processes need the same value.
	Sharded string `opt:"sharded" help:"on a cluster: tell releases by SPUBLISH (on), PUBLISH (off), or SPUBLISH where the servers know it (auto)"`
}

// Defaults are Redisson's: the watchdog runs, sharded is auto.
func Defaults() Options { return Options{Watchdog: true, Sharded: redisson.ShardedAuto} }

// Validate rejects an unknown value of sharded.
func (o Options) Validate() error { return redisson.ValidSharded(o.Sharded) }

// Refine claims the watchdog when it runs.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	return info
}

// PubSubOptions are those of pubsub.
type PubSubOptions struct {
	Options
	Blind    bool `opt:"blind" help:"do not try again after subscribing: a release that comes in between wakes nobody (unsafe, to be measured)"`
	Pipeline bool `opt:"pipeline" help:"send the commands of all callers down one connection, gathered into pipelines"`
}

// PubSubDefaults are Defaults, neither blind nor with a pipeline.
func PubSubDefaults() PubSubOptions { return PubSubOptions{Options: Defaults()} }

// Refine also says what blind loses, and adds the pipeline's connection.
func (o PubSubOptions) Refine(info strategies.Info) strategies.Info {
	info.Caveat = ""
	if o.Blind {
		info.Caveat = "a release between the first try and the subscription wakes nobody: " +
			"the waiter sleeps until the TTL is over"
	}
	return pipeline.Refine(o.Options.Refine(info), o.Pipeline)
}

// Locker is one process's side of a lock. Its holders share a watchdog, and its waiters, but for
// pubsub-broadcast's, a subscription. It is a strategies.Locker, Trier, Reentrant and Preparer; the
// leases of fenced are strategies.Fenced.
type Locker struct {
	*redisson.Lock
	finish func() error // ends what the kind has started
}

// Close ends the subscriptions, the watchdog and the pipeline. Leases can still be released.
func (l *Locker) Close() error { return errors.Join(l.Lock.Close(), l.finish()) }

func nothing() error { return nil }

// check rejects what no kind can be opened with.
func check(name string, config goredis.Config, options strategies.Validator) error {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// shared is a Locker whose waiters share a subscription of the client.
func shared(
	config goredis.Config, client redis.UniversalClient, kind redisson.Kind, o Options, blind bool, finish func() error,
) *Locker {
	line, herald := redisson.NewLine(client, redisson.One), redisson.NewHerald(client, o.Sharded)
	return &Locker{redisson.NewLock(config, kind, line, herald, redisson.Ways{Renew: o.Watchdog, Blind: blind}), finish}
}

// OpenPubSub returns a Locker of pubsub on the first node. It does not talk to Redis yet.
func OpenPubSub(config goredis.Config, options PubSubOptions) (*Locker, error) {
	if err := check(pubsub, config, options); err != nil {
		return nil, err
	}
	client := config.Nodes[0].Client
	config, hangUp, err := pipeline.Over(config, options.Pipeline)
	if err != nil {
		return nil, fmt.Errorf("pubsub: %w", err)
	}
	return shared(config, client, redisson.RLock{}, options.Options, options.Blind, hangUp), nil
}

// OpenPubSubBroadcast returns a Locker of pubsub-broadcast on the first node. It does not talk to
// Redis yet.
func OpenPubSubBroadcast(config goredis.Config, options Options) (*Locker, error) {
	if err := check(broadcast, config, options); err != nil {
		return nil, err
	}
	herd, err := newHerd(config.Nodes[0], config.Callers)
	if err != nil {
		return nil, fmt.Errorf("pubsub-broadcast: %w", err)
	}
	herald := redisson.NewHerald(config.Nodes[0].Client, options.Sharded)
	ways := redisson.Ways{Renew: options.Watchdog}
	return &Locker{redisson.NewLock(config, redisson.RLock{}, herd, herald, ways), nothing}, nil
}

// OpenFair returns a Locker of fair on the first node. It does not talk to Redis yet.
func OpenFair(config goredis.Config, options FairOptions) (*Locker, error) {
	if err := check(fair, config, options); err != nil {
		return nil, err
	}
	client := config.Nodes[0].Client
	queue := &queue{timeout: options.WaitTimeout, leaving: newLeavers(client)}
	return shared(config, client, queue, options.common(), false, queue.leaving.close), nil
}

// OpenFenced returns a Locker of fenced on the first node. It does not talk to Redis yet.
func OpenFenced(config goredis.Config, options Options) (*Locker, error) {
	if err := check(fenced, config, options); err != nil {
		return nil, err
	}
	return shared(config, config.Nodes[0].Client, counted{}, options, false, nothing), nil
}

// NewPubSub makes Redisson's RLock for a service, on one Redis or Redis Cluster, with
// PubSubDefaults. It does not talk to Redis yet. Its error joins every error of the options. The
// caller closes the client, after the Locker.
func NewPubSub(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return NewPubSubWith(client, PubSubDefaults(), options...)
}

// NewPubSubWith is NewPubSub with other options than PubSubDefaults. It ignores their Watchdog:
// lock.Watchdog has leases renewed.
func NewPubSubWith(client redis.UniversalClient, options PubSubOptions, more ...lock.Option) (*lock.Locker, error) {
	options.Watchdog = false // only for leases without a TTL of their own
	return lock.Open([]redis.UniversalClient{client}, OpenPubSub, options, more)
}

// NewFair is NewPubSub for Redisson's RFairLock, with FairDefaults.
func NewFair(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return NewFairWith(client, FairDefaults(), options...)
}

// NewFairWith is NewPubSubWith for Redisson's RFairLock.
func NewFairWith(client redis.UniversalClient, options FairOptions, more ...lock.Option) (*lock.Locker, error) {
	options.Watchdog = false
	return lock.Open([]redis.UniversalClient{client}, OpenFair, options, more)
}

// NewFenced is NewPubSub for Redisson's RFencedLock, with Defaults.
func NewFenced(client redis.UniversalClient, options ...lock.Option) (*lock.FencedLocker, error) {
	return NewFencedWith(client, Defaults(), options...)
}

// NewFencedWith is NewPubSubWith for Redisson's RFencedLock.
func NewFencedWith(client redis.UniversalClient, options Options, more ...lock.Option) (*lock.FencedLocker, error) {
	options.Watchdog = false
	return lock.OpenFenced([]redis.UniversalClient{client}, OpenFenced, options, more)
}
