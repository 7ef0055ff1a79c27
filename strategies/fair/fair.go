// Package fair is Redisson's RFairLock, wire-compatible with it: the lock of package pubsub
// with a queue in Redis. Only its head may take the lock, and a release is told to the head
// alone.
//
// fair.md has the rest: what it guarantees, what breaks it, and what it costs.
package fair

import (
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

//go:embed fair.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:         doc,
		Name:        "fair",
		Summary:     "Redisson RFairLock: a queue in Redis, a release is published to its head",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, FIFO: true, Reentrant: true},
		Capacity:    1,
		Nodes:       1,
		Keys:        []string{"{key}", "redisson_lock_queue:{key}", "redisson_lock_timeout:{key}"},
		Libraries:   []strategies.Library{{Language: "Java", Package: "org.redisson:redisson", Call: "getFairLock"}},
		Connections: strategies.Connections{PerInstance: 1},
		Limits: []strategies.Limit{
			strategies.ByRedisClock(),
			{Check: "late commands", Because: "an acquire that comes late waits at the head of the queue for nobody, until wait-timeout is over"},
		},
		Rights: rights(),
	}), Defaults(), Open)
}

func rights() strategies.Rights {
	r := redisson.LockRights("lindex", "lpop", "lrange", "lrem", "rpush", "zadd", "zincrby", "zrange", "zrem", "zscore")
	r.Keys = append(r.Keys, "redisson_lock_queue:*{key}", "redisson_lock_timeout:*{key}")
	return r
}

// Options of the lock.
type Options struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
	// A dead waiter is noticed by its deadline: the deadline of the waiter before it (or the
	// holder's PTTL) plus WaitTimeout, or plus the longest that it would wait itself if that
	// is less. Whoever next takes or releases the lock drops overdue heads. A waiter that
	// gets the lock or gives up shifts the deadlines behind it. If it gives up while Redis is
	// out of reach, it leaves the queue as soon as Redis answers again, while its process
	// lives.
	WaitTimeout time.Duration `opt:"wait-timeout" help:"how long a dead waiter at the head of the queue holds up the others"`
	Sharded     string        `opt:"sharded" help:"on a cluster: tell releases by SPUBLISH (on), PUBLISH (off), or SPUBLISH where the servers know it (auto)"`
}

// Defaults are Redisson's: the watchdog runs, a dead waiter costs 5 minutes, sharded
// is auto.
func Defaults() Options {
	return Options{Watchdog: true, WaitTimeout: 5 * time.Minute, Sharded: redisson.ShardedAuto}
}

// Validate rejects a wait-timeout below 1 ms, and an unknown value of sharded.
func (o Options) Validate() error {
	var short error
	if o.WaitTimeout < time.Millisecond {
		short = fmt.Errorf("wait-timeout must be at least 1ms, not %v", o.WaitTimeout)
	}
	return errors.Join(short, redisson.ValidSharded(o.Sharded))
}

// Refine claims the watchdog when it runs.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	return info
}

// rlock has the methods that all locks of the family share.
type rlock = redisson.Lock

// Locker is one process's side of the lock. It is a strategies.Locker, Trier,
// Reentrant and Preparer.
type Locker struct {
	*rlock
	kind *kind
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
		return nil, fmt.Errorf("fair: %w", err)
	}
	client := config.Nodes[0].Client
	k := &kind{timeout: options.WaitTimeout, leaving: newLeavers(client)}
	line, herald := redisson.NewLine(client, redisson.One), redisson.NewHerald(client, options.Sharded)
	return &Locker{redisson.NewLock(config, k, line, herald, redisson.Ways{Renew: options.Watchdog}), k}, nil
}

// Close ends the subscriptions and the watchdog. Leases can still be released.
func (l *Locker) Close() error {
	err := l.rlock.Close()
	l.kind.leaving.close()
	return err
}
