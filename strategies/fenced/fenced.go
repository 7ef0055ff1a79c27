// Package fenced is Redisson's RFencedLock, wire-compatible with it: the lock of package
// pubsub, and with each acquisition a token that only grows, by which a resource can
// refuse a writer whose lease has run out unnoticed.
//
// fenced.md has the rest: what it guarantees, what breaks it, and what it costs.
package fenced

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed fenced.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:         doc,
		Name:        "fenced",
		Summary:     "Redisson RFencedLock: pubsub, plus a token that only grows",
		Assumes:     "the server keeps its data",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Fencing: true, Reentrant: true},
		Capacity:    1,
		Nodes:       1,
		Libraries:   []strategies.Library{{Language: "Java", Package: "org.redisson:redisson", Call: "getFencedLock"}},
		Keys:        []string{"{key}", tokenPrefix + ":{key}"},
		Persistent:  []string{tokenPrefix + ":{key}"},
		Connections: strategies.Connections{PerInstance: 1},
		Limits:      []strategies.Limit{strategies.ByRedisClock()},
		Rights:      rights(),
	}), Defaults(), Open)
}

// tokenPrefix names the counter.
const tokenPrefix = "redisson_lock_token"

var (
	//go:embed acquire.lua
	acquireSource string
	acquireScript = redis.NewScript(acquireSource)
)

func rights() strategies.Rights {
	r := redisson.LockRights("incr")
	r.Keys = append(r.Keys, "redisson_lock_token:*{key}")
	return r
}

// Options of the lock.
type Options struct {
	Watchdog bool   `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
	Sharded  string `opt:"sharded" help:"on a cluster: tell releases by SPUBLISH (on), PUBLISH (off), or SPUBLISH where the servers know it (auto)"`
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

// rlock has the methods that all locks of the family share.
type rlock = redisson.Lock

// Locker is one process's side of the lock. Its waiters share a subscription, and its holders
// share a watchdog. It is a strategies.Locker, Trier, Reentrant and Preparer; its leases are
// strategies.Fenced.
type Locker struct{ *rlock }

// New makes a lock for a service, on one Redis or Redis Cluster, with Defaults. It does not
// talk to Redis yet. Its error joins every error of the options. The caller closes the
// client, after the Locker.
func New(client redis.UniversalClient, options ...lock.Option) (*lock.FencedLocker, error) {
	return NewWith(client, Defaults(), options...)
}

// NewWith is New with other Options than Defaults. It ignores their Watchdog: lock.Watchdog
// has leases renewed.
func NewWith(client redis.UniversalClient, options Options, more ...lock.Option) (*lock.FencedLocker, error) {
	options.Watchdog = false // only for leases without a TTL of their own
	return lock.OpenFenced([]redis.UniversalClient{client}, Open, options, more)
}

// Open returns a Locker on the first node. It does not talk to Redis yet.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("fenced: %w", err)
	}
	client := config.Nodes[0].Client
	line, herald := redisson.NewLine(client, redisson.One), redisson.NewHerald(client, options.Sharded)
	return &Locker{redisson.NewLock(config, kind{}, line, herald, redisson.Ways{Renew: options.Watchdog})}, nil
}

// lease is one of the family's, with its token.
type lease struct{ *redisson.Lease }

// FencingToken is larger than that of every earlier lease on the same key.
func (held lease) FencingToken() int64 { return held.Fence }

// kind differs from the plain lock by its acquire, and by the token of its leases.
type kind struct{ redisson.RLock }

func (k kind) Scripts() []*redis.Script { return append(k.RLock.Scripts(), acquireScript) }

func (kind) Granted(held *redisson.Lease) strategies.Lease { return lease{held} }

func (kind) Acquire(ctx context.Context, client redis.Scripter, held *redisson.Lease) (taken bool, left time.Duration, err error) {
	keys := []string{held.Key, redisson.Prefixed(tokenPrefix, held.Key)}
	reply, err := acquireScript.Run(ctx, client, keys, held.TTL(), held.Owner).Int64Slice()
	switch {
	case err != nil:
		return false, 0, err
	case len(reply) != 2:
		return false, 0, fmt.Errorf("the acquire script replied %v, want two numbers", reply)
	case reply[0] == 0:
		return false, held.ParkFor(reply[1]), nil
	}
	held.Fence = reply[1]
	return true, 0, nil
}
