// Package redisson implements Redisson's RLock (pubsub), RFairLock (fair), RFencedLock (fenced) and RSpinLock
// (redisson-spin), all wire-compatible with Redisson. It also implements pubsub-broadcast, an RLock whose waiters do
// not share a subscription. The lock is a hash that maps the owner to its number of holds.
//
//  1. Acquire runs one script. If the hash {KEY} does not exist or contains the owner, the script adds a hold and sets
//     the TTL (HINCRBY, PEXPIRE). Otherwise it returns the PTTL. In fenced the script draws the token with INCR
//     redisson_lock_token:{KEY} before it adds a hold. In fair only the head of the list redisson_lock_queue:{KEY} may
//     take the lock. Any other owner is appended to the list (RPUSH), and its deadline to redisson_lock_timeout:{KEY}
//     (ZADD).
//  2. A waiter subscribes to redisson_lock__channel:{KEY}, tries again, and parks until a message arrives or the PTTL
//     is over. In fair the channel's name also ends in :OWNER. The waiters of a process share one connection; in
//     pubsub-broadcast each has its own. A waiter of redisson-spin sleeps and tries again instead.
//  3. Release runs one script. It removes a hold (HINCRBY -1). With the last hold it deletes the hash and, except in
//     redisson-spin, publishes 0 on the channel (in fair on the channel of the head of the queue).
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

// These are the names under which the kinds of lock are registered.
const (
	pubsub    = "pubsub"
	broadcast = "pubsub-broadcast"
	fair      = "fair"
	fenced    = "fenced"
	spin      = "redisson-spin"
)

// Strategies describes the five kinds of lock, for registration under their names.
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
				Because: "an acquire that Redis receives late queues a waiter that no longer waits, which blocks the " +
					"queue until wait-timeout is over",
			}},
			Rights: redisson.Rights(slices.Concat(hash, queueCommands)...),
		}, FairDefaults(), OpenFair, queuePrefix, deadlinesPrefix),
		define(strategies.Info{
			Name:        fenced,
			Format:      "Redisson RFencedLock",
			Summary:     "Redisson RFencedLock: pubsub with a fencing token",
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

// hash lists the commands that the scripts of every kind run on the lock's hash.
var hash = []string{"exists", "hexists", "hincrby", "pexpire", "pttl", "del"}

func java(call string) []strategies.Library {
	return []strategies.Library{{Language: "Java", Package: "org.redisson:redisson", Call: call}}
}

// define adds to info what all kinds have in common, and returns the strategy. prefixes are the prefixes of the keys
// that a kind has in addition to the lock's hash.
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

// WatchdogOption enables the watchdog, which renews leases. Every kind has this option.
type WatchdogOption struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
}

// Refine sets the claim Watchdog if the option is true.
func (o WatchdogOption) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	return info
}

// Options are the options of fenced. The options of pubsub include them.
type Options struct {
	WatchdogOption
	// On a cluster of Redis 7 or later, releases are published by SPUBLISH and received by SSUBSCRIBE, as in Redisson, so
	// that only the node with the lock's hash slot handles them. A process then has a connection to each node on whose
	// locks it has waited. On older clusters, or with off, releases are published by PUBLISH, which every node forwards to
	// all others. All processes must use the same value.
	Sharded string `opt:"sharded" help:"on a cluster: publish releases by SPUBLISH (on), by PUBLISH (off), or by SPUBLISH where the servers support it (auto)"`
}

// Defaults returns Redisson's defaults: the watchdog runs, and sharded is auto.
func Defaults() Options { return Options{WatchdogOption{true}, redisson.ShardedAuto} }

// Validate rejects an unknown value of sharded.
func (o Options) Validate() error { return redisson.ValidSharded(o.Sharded) }

// PubSubOptions are the options of pubsub. For all fields except Options, values other than those of PubSubDefaults
// exist only for measurements.
type PubSubOptions struct {
	Options
	Blind bool   `opt:"blind" help:"do not try again after subscribing, so that a release before the subscription wakes no waiter (unsafe, only for measurements)"`
	Park  string `opt:"park" help:"how long a waiter sleeps without a message: until the holder's TTL expires (ttl), or until its own deadline (deadline: does not notice a holder's crash; only for measurements)"`

	Confirm bool `opt:"confirm" help:"each waiter waits until the shared SUBSCRIBE is confirmed; false, as in published samples: only the first waiter does (unsafe, only for measurements)"`
	Hoard   bool `opt:"hoard" help:"keep the subscription, and a wake-up for each message that arrived while no client waited, as in published samples with Semaphore(0) (slow, only for measurements)"`
	HandOn  bool `opt:"hand-on" help:"a waiter that gives up passes its wake-up to the next waiter; false, as in published samples: the wake-up is lost (unsafe, only for measurements)"`
}

// These are the values of park: how long a waiter without a message sleeps.
const (
	parkTTL      = "ttl"
	parkDeadline = "deadline"
)

// PubSubDefaults returns Redisson's defaults. They include Defaults and set no option that exists only for
// measurements.
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

// Refine does what Options.Refine does, and adds a caveat for each option whose value exists only for measurements.
func (o PubSubOptions) Refine(info strategies.Info) strategies.Info {
	var caveats []string
	add := func(is bool, caveat string) {
		if is {
			caveats = append(caveats, caveat)
		}
	}
	add(o.Blind, "a release between a waiter's first try and its subscription does not wake the waiter, which then "+
		"sleeps until the TTL expires")
	add(o.Park == parkDeadline, "after a holder's crash each waiter sleeps until its own deadline")
	add(!o.Confirm, "as in published sample code, a waiter that joins a subscription before Redis has confirmed it may "+
		"miss a release, and sleeps until the TTL expires if the first waiter gives up")
	add(o.Hoard, "as in published sample code, a process keeps a wake-up for each message that arrived while no client "+
		"waited, and for each of them a later waiter tries in vain")
	add(!o.HandOn, "as in published sample code, a waiter that gives up does not pass on its wake-up, so other waiters "+
		"sleep until the TTL expires although the lock is free")
	info.Caveat = strings.Join(caveats, "; ")
	return o.Options.Refine(info)
}

// check returns all errors in the configuration and the options of a kind, joined. name is the name of the kind.
func check(name string, config goredis.Config, options error) error {
	if err := errors.Join(config.Validate(1), options); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// subscribing returns the parts of a Locker whose waiters share one subscription connection, opened by the node's
// client.
func subscribing(node goredis.Node, k protocol, sharded string, watchdog bool, flaws redisson.Flaws) parts {
	return parts{
		protocol: k, notifier: redisson.NewNotifier(node, redisson.One, flaws), herald: redisson.NewHerald(node, sharded),
		renew: watchdog,
	}
}

// OpenPubSub returns a Locker of pubsub on the only node of config, for use by lockbench. It sends no command to Redis.
func OpenPubSub(config goredis.Config, o PubSubOptions) (*Locker, error) {
	if err := check(pubsub, config, o.Validate()); err != nil {
		return nil, err
	}
	with := subscribing(config.Nodes[0], rlock{}, o.Sharded, o.Watchdog, o.flaws())
	with.blind, with.sleeps = o.Blind, o.Park == parkDeadline
	return newLocker(config, with), nil
}

// OpenPubSubBroadcast returns a Locker of pubsub-broadcast on the only node of config, for use by lockbench. It sends
// no command to Redis.
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

// OpenFair returns a Locker of fair on the only node of config, for use by lockbench. It sends no command to Redis.
func OpenFair(config goredis.Config, o FairOptions) (*Locker, error) {
	if err := check(fair, config, o.Validate()); err != nil {
		return nil, err
	}
	queue := &queue{timeout: o.WaitTimeout, leaving: newLeavers(config.Nodes[0].Client)}
	with := subscribing(config.Nodes[0], queue, o.Sharded, o.Watchdog, redisson.Flaws{})
	with.finish = queue.leaving.close
	return newLocker(config, with), nil
}

// OpenFenced returns a Locker of fenced on the only node of config, for use by lockbench. It sends no command to Redis.
func OpenFenced(config goredis.Config, o Options) (*Locker, error) {
	if err := check(fenced, config, o.Validate()); err != nil {
		return nil, err
	}
	return newLocker(config, subscribing(config.Nodes[0], counted{}, o.Sharded, o.Watchdog, redisson.Flaws{})), nil
}

// OpenSpin returns a Locker of redisson-spin on the only node of config, for use by lockbench. It sends no command to
// Redis.
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

// NewPubSub returns Redisson's RLock for a service, on one Redis or Redis Cluster, with PubSubDefaults. It sends no
// command to Redis. Its error joins the errors of all options. The caller must close the Locker before the client. The
// field Watchdog of PubSubDefaults has no effect here; lock.Watchdog enables renewals.
func NewPubSub(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, OpenPubSub, PubSubDefaults(), options)
}

// NewFair returns Redisson's RFairLock for a service, with FairDefaults. NewPubSub describes what applies to client and
// options.
func NewFair(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, OpenFair, FairDefaults(), options)
}

// NewFenced returns Redisson's RFencedLock for a service, with Defaults. NewPubSub describes what applies to client and
// options.
func NewFenced(client redis.UniversalClient, options ...lock.Option) (*lock.FencedLocker, error) {
	return lock.OpenFenced([]redis.UniversalClient{client}, OpenFenced, Defaults(), options)
}

// NewSpin returns Redisson's RSpinLock for a service. NewPubSub describes what applies to client and options.
func NewSpin(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, OpenSpin, WatchdogOption{}, options)
}
