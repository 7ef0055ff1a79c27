// Package redisson implements Redisson's RLock (pubsub), RFairLock (fair), RFencedLock (fenced) and RSpinLock
// (redisson-spin), wire-compatible with them, and pubsub-broadcast, an RLock without a shared subscription. The lock
// is a hash that maps the owner to its number of holds.
//
//  1. Acquire runs one script. The script adds a hold if the hash does not exist or belongs to the owner, and
//     otherwise returns the PTTL. In fenced it also draws a token with the hold. In fair only the head of the queue
//     may take the lock, and the script queues an owner that does not get it.
//  2. A waiter subscribes to the lock's channel (in fair to its own channel), tries again, and parks until a message
//     arrives or the PTTL is over. The waiters of a process share one connection; in pubsub-broadcast each has its
//     own. A waiter of redisson-spin sleeps and tries again instead.
//  3. Release runs one script. With the last hold the script deletes the hash and, except in redisson-spin, publishes
//     a message.
//
// The message of a release wakes one waiter of each process in pubsub and fenced, all waiters in pubsub-broadcast,
// and the head of the queue in fair. A watchdog renews leases every TTL/3 while they are held.
//
// The .md page of each lock describes guarantees, costs and failure modes.
package redisson

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed *.md
var docs embed.FS

// These are the names of the kinds.
const (
	pubsub    = "pubsub"
	broadcast = "pubsub-broadcast"
	fair      = "fair"
	fenced    = "fenced"
	spin      = "redisson-spin"
)

// Strategies describes the five kinds, for registration under their names.
func Strategies() []strategies.Strategy {
	return []strategies.Strategy{
		define(strategies.Info{
			Name:        pubsub,
			Format:      "Redisson RLock",
			Summary:     "Redisson RLock: a release publishes a message, which wakes one waiter of each process",
			Libraries:   java("getLock"),
			Connections: strategies.Connections{PerInstance: 1},
			Rights:      redisson.Rights(hash...),
		}, PubSubDefaults(), OpenPubSub),
		define(strategies.Info{
			Name:        broadcast,
			Format:      "Redisson RLock",
			Summary:     "pubsub with a subscription for each waiter: a release wakes all waiters",
			Connections: strategies.Connections{PerWaiter: 1},
			Rights:      redisson.Rights(hash...),
		}, WatchdogOption{true}, OpenPubSubBroadcast),
		define(strategies.Info{
			Name:        fair,
			Format:      "Redisson RFairLock",
			Summary:     "Redisson RFairLock: a queue in Redis; a release notifies its head only",
			Claims:      strategies.Claims{FIFO: true},
			Libraries:   java("getFairLock"),
			Connections: strategies.Connections{PerInstance: 1},
			Limits: []strategies.Limit{{
				Check: "late commands",
				Because: "an acquire that Redis receives late queues a waiter that has gone, which blocks the queue " +
					"until wait-timeout is over",
			}},
			Rights: redisson.Rights(slices.Concat(hash, queueCommands)...),
		}, FairDefaults(), OpenFair, queuePrefix, deadlinesPrefix),
		define(strategies.Info{
			Name:        fenced,
			Format:      "Redisson RFencedLock",
			Summary:     "Redisson RFencedLock: pubsub, plus a token that only grows",
			Assumes:     "the server keeps its data",
			Claims:      strategies.Claims{Fencing: true},
			Persistent:  []string{tokenPrefix + ":{key}"},
			Libraries:   java("getFencedLock"),
			Connections: strategies.Connections{PerInstance: 1},
			Rights:      redisson.Rights(append(slices.Clone(hash), "incr")...),
		}, Defaults(), OpenFenced, tokenPrefix),
		define(strategies.Info{
			Name:    spin,
			Format:  "Redisson RSpinLock",
			Summary: "Redisson RSpinLock: the hash of RLock, polled with the backoff of RSpinLock",
			Rights: strategies.Rights{
				Keys:     []string{"{key}"},
				Commands: append(slices.Clone(hash), "eval", "evalsha", "script|load"),
			},
		}, WatchdogOption{true}, OpenSpin),
	}
}

// hash are the commands on the lock's hash.
var hash = []string{"exists", "hexists", "hincrby", "pexpire", "pttl", "del"}

func java(call string) []strategies.Library {
	return []strategies.Library{{Language: "Java", Package: "org.redisson:redisson", Call: call}}
}

// define adds the properties that all kinds have in common. A kind may have further keys with the given prefixes.
func define[O strategies.Refiner](
	info strategies.Info, defaults O, open func(goredis.Config, O) (*Locker, error), prefixes ...string,
) strategies.Strategy {
	text, err := docs.ReadFile(info.Name + ".md")
	if err != nil {
		panic(err) // the page is embedded, so it exists
	}
	info.Doc, info.Capacity, info.Nodes = string(text), 1, 1
	info.Claims.Exclusion, info.Claims.Recovery, info.Claims.Reentrant = true, true, true
	info.Limits = append([]strategies.Limit{strategies.ByRedisClock()}, info.Limits...)
	info.Keys = []string{"{key}"}
	for _, prefix := range prefixes {
		info.Keys = append(info.Keys, prefix+":{key}")
		info.Rights.Keys = append(info.Rights.Keys, prefix+":*{key}")
	}
	return strategies.Define(defaults.Refine(info), defaults, open)
}

// WatchdogOption is the option of every kind.
type WatchdogOption struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
}

// Refine claims a watchdog if the watchdog runs.
func (o WatchdogOption) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	return info
}

// Options are the options of fenced. pubsub has them too.
type Options struct {
	WatchdogOption
	// On a cluster of Redis 7 or later a release is published by SPUBLISH and received by SSUBSCRIBE, as in Redisson:
	// only the node with the lock's hash slot receives it. A process then has a connection to each node on whose locks
	// it has waited. On older clusters, or with off, PUBLISH goes to every node. All processes must have the same value.
	Sharded string `opt:"sharded" help:"on a cluster: publish releases by SPUBLISH (on), by PUBLISH (off), or by SPUBLISH where the servers support it (auto)"`
}

// Defaults are Redisson's: the watchdog runs, sharded is auto.
func Defaults() Options { return Options{WatchdogOption{true}, redisson.ShardedAuto} }

// Validate rejects an unknown value of sharded.
func (o Options) Validate() error { return redisson.ValidSharded(o.Sharded) }

// PubSubOptions are the options of pubsub.
type PubSubOptions struct {
	Options
	Blind bool   `opt:"blind" help:"do not try again after subscribing: a release in between wakes no waiter (unsafe, to be measured)"`
	Park  string `opt:"park" help:"how long a waiter without a message sleeps: until the holder's TTL is over (ttl), or until its own deadline (deadline: it misses a crash; to be measured)"`

	Confirm bool `opt:"confirm" help:"each waiter waits until the shared SUBSCRIBE is confirmed; false, as in sample code: only the first waiter does (unsafe, to be measured)"`
	Hoard   bool `opt:"hoard" help:"keep the subscription, and a wake-up for each message that found no waiter, as in sample code with Semaphore(0) (slow, to be measured)"`
	HandOn  bool `opt:"hand-on" help:"a waiter that gives up passes its wake-up to the next; false, as in sample code: the wake-up is lost (unsafe, to be measured)"`
}

// These are the values of park: how long a waiter without a message sleeps.
const (
	parkTTL      = "ttl"
	parkDeadline = "deadline"
)

// PubSubDefaults are Defaults without the faults of sample code; waiters try again when the holder's TTL is over.
func PubSubDefaults() PubSubOptions {
	return PubSubOptions{Options: Defaults(), Park: parkTTL, Confirm: true, HandOn: true}
}

func (o PubSubOptions) flaws() redisson.Flaws {
	return redisson.Flaws{Unconfirmed: !o.Confirm, Hoards: o.Hoard, Keeps: !o.HandOn}
}

// Validate rejects unknown values of sharded and park; an empty park means ttl.
func (o PubSubOptions) Validate() error {
	var park error
	if o.Park != "" && o.Park != parkTTL && o.Park != parkDeadline {
		park = fmt.Errorf("park must be %s or %s, not %q", parkTTL, parkDeadline, o.Park)
	}
	return errors.Join(o.Options.Validate(), park)
}

// Refine also describes the faults of the options that exist only to be measured.
func (o PubSubOptions) Refine(info strategies.Info) strategies.Info {
	var caveats []string
	add := func(is bool, caveat string) {
		if is {
			caveats = append(caveats, caveat)
		}
	}
	add(o.Blind, "a release between the first try and the subscription wakes no waiter: "+
		"the waiter sleeps until the TTL is over")
	add(o.Park == parkDeadline, "after a holder's crash each waiter sleeps until its own deadline")
	add(!o.Confirm, "sample code of articles: a waiter that joins a subscription before Redis has confirmed it misses a "+
		"release, and sleeps until the TTL is over if the first waiter gives up")
	add(o.Hoard, "sample code of articles: a process keeps a permit of each message that found no waiter, and its "+
		"next waiters try in vain for each")
	add(!o.HandOn, "sample code of articles: a waiter that gives up takes its wake-up with it, and the others sleep "+
		"until the TTL is over although the lock is free")
	info.Caveat = strings.Join(caveats, "; ")
	return o.Options.Refine(info)
}

// check rejects a configuration that no kind can be opened with.
func check(name string, config goredis.Config, options error) error {
	if err := errors.Join(config.Validate(1), options); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// subscribing returns the parts of a Locker whose waiters share a subscription of the node's client.
func subscribing(node goredis.Node, k protocol, sharded string, watchdog bool, flaws redisson.Flaws) parts {
	return parts{
		protocol: k, notifier: redisson.NewNotifier(node, redisson.One, flaws), herald: redisson.NewHerald(node, sharded),
		renew: watchdog,
	}
}

// OpenPubSub returns a Locker of pubsub on the first node. It sends no command to Redis.
func OpenPubSub(config goredis.Config, o PubSubOptions) (*Locker, error) {
	if err := check(pubsub, config, o.Validate()); err != nil {
		return nil, err
	}
	with := subscribing(config.Nodes[0], rlock{}, o.Sharded, o.Watchdog, o.flaws())
	with.blind, with.sleeps = o.Blind, o.Park == parkDeadline
	return newLocker(config, with), nil
}

// OpenPubSubBroadcast returns a Locker of pubsub-broadcast on the first node. It sends no command to Redis.
func OpenPubSubBroadcast(config goredis.Config, o WatchdogOption) (*Locker, error) {
	if err := check(broadcast, config, nil); err != nil {
		return nil, err
	}
	herd, err := redisson.NewHerd(config.Nodes[0], config.Callers)
	if err != nil {
		return nil, fmt.Errorf("pubsub-broadcast: %w", err)
	}
	return newLocker(config, parts{
		protocol: rlock{}, notifier: herd, herald: redisson.NewHerald(goredis.Node{}, redisson.ShardedOff), renew: o.Watchdog,
	}), nil
}

// OpenFair returns a Locker of fair on the first node. It sends no command to Redis.
func OpenFair(config goredis.Config, o FairOptions) (*Locker, error) {
	if err := check(fair, config, o.Validate()); err != nil {
		return nil, err
	}
	queue := &queue{timeout: o.WaitTimeout, leaving: newLeavers(config.Nodes[0].Client)}
	with := subscribing(config.Nodes[0], queue, o.Sharded, o.Watchdog, redisson.Flaws{})
	with.finish = queue.leaving.close
	return newLocker(config, with), nil
}

// OpenFenced returns a Locker of fenced on the first node. It sends no command to Redis.
func OpenFenced(config goredis.Config, o Options) (*Locker, error) {
	if err := check(fenced, config, o.Validate()); err != nil {
		return nil, err
	}
	return newLocker(config, subscribing(config.Nodes[0], counted{}, o.Sharded, o.Watchdog, redisson.Flaws{})), nil
}

// OpenSpin returns a Locker of redisson-spin on the first node. It sends no command to Redis.
func OpenSpin(config goredis.Config, o WatchdogOption) (*Locker, error) {
	if err := check(spin, config, nil); err != nil {
		return nil, err
	}
	return newLocker(config, parts{
		protocol: rlock{quiet: true}, notifier: &polling{}, herald: redisson.NewHerald(goredis.Node{}, redisson.ShardedOff),
		renew: o.Watchdog,
		blind: true, // a waiter always sleeps between two tries
	}), nil
}

// NewPubSub makes Redisson's RLock for a service, on one Redis or Redis Cluster, with PubSubDefaults. It sends no
// command to Redis. Its error joins all errors of the options. The caller closes the client, after the Locker. The
// field Watchdog of the options has no effect on a Locker of package lock; lock.Watchdog enables renewals.
func NewPubSub(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, OpenPubSub, PubSubDefaults(), options)
}

// NewFair is NewPubSub for Redisson's RFairLock, with FairDefaults.
func NewFair(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, OpenFair, FairDefaults(), options)
}

// NewFenced is NewPubSub for Redisson's RFencedLock, with Defaults.
func NewFenced(client redis.UniversalClient, options ...lock.Option) (*lock.FencedLocker, error) {
	return lock.OpenFenced([]redis.UniversalClient{client}, OpenFenced, Defaults(), options)
}

// NewSpin is NewPubSub for Redisson's RSpinLock.
func NewSpin(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, OpenSpin, WatchdogOption{}, options)
}
