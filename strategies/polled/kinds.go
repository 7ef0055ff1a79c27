package polled

import (
	_ "embed" // the texts
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/lock"
)

var (
	//go:embed setnx.md
	setNXDoc string
	//go:embed setnx-expire.md
	setNXExpireDoc string
	//go:embed spin.md
	spinDoc string
	//go:embed redisson-spin.md
	redissonSpinDoc string
)

// Strategies describes the locks, to be registered and opened by name.
func Strategies() []strategies.Strategy {
	expire := SetNXExpireOptions{Delay: 10 * time.Millisecond, Check: atomically}
	renewed := RedissonSpinOptions{Watchdog: true} // as in Redisson
	return []strategies.Strategy{
		strategies.Define(strategies.Info{
			Doc: setNXDoc, Name: "setnx", Capacity: 1, Nodes: 1,
			Summary: "SETNX without TTL, polled; GET then DEL to release: the naive lock",
			Claims:  strategies.Claims{Exclusion: true},
			Caveat: "a holder that crashes blocks the lock for ever; " +
				"a release may delete somebody else's lock once anything but a holder has removed the key",
			Rights: rights("setnx", "get", "del"),
		}, SetNXOptions{10 * time.Millisecond}, openSetNX),
		strategies.Define(expire.Refine(strategies.Info{
			Doc: setNXExpireDoc, Name: "setnx-expire", Capacity: 1, Nodes: 1,
			Summary: "SETNX, then EXPIRE as a second command, polled",
			Rights:  rights("setnx", "eval", "evalsha", "get", "del", "pexpire", "script|load"),
		}), expire, openSetNXExpire),
		strategies.Define(strategies.Info{
			Doc: spinDoc, Name: "spin", Capacity: 1, Nodes: 1,
			Summary: "SET NX PX, polled with backoff",
			Claims:  strategies.Claims{Exclusion: true, Recovery: true},
			Limits:  []strategies.Limit{strategies.ByRedisClock()},
			Rights:  rights("set", "eval", "evalsha", "get", "del", "pexpire", "script|load"),
		}, SpinDefaults(), OpenSpin),
		strategies.Define(renewed.Refine(strategies.Info{
			Doc: redissonSpinDoc, Name: "redisson-spin", Capacity: 1, Nodes: 1,
			Summary: "Redisson RSpinLock: the hash of RLock, polled with its backoff",
			Claims:  strategies.Claims{Exclusion: true, Recovery: true, Reentrant: true},
			Limits:  []strategies.Limit{strategies.ByRedisClock()},
			Rights:  redisson.SpinRights(),
		}), renewed, openRedissonSpin),
	}
}

func rights(commands ...string) strategies.Rights {
	return strategies.Rights{Keys: []string{"{key}"}, Commands: commands}
}

// RedissonSpinOptions are those of redisson-spin.
type RedissonSpinOptions struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
}

// Refine claims the watchdog when it runs.
func (o RedissonSpinOptions) Refine(info strategies.Info) strategies.Info {
	info.Claims.Watchdog = o.Watchdog
	return info
}

// NewRedissonSpin makes a redisson-spin lock for a service, on one Redis or Redis Cluster. It does not talk to
// Redis yet. Its error joins every error of the options. The caller closes the client, after the Locker.
func NewRedissonSpin(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	// The watchdog would be only for leases without a TTL of their own: lock.Watchdog renews.
	return lock.Open([]redis.UniversalClient{client}, openRedissonSpin, RedissonSpinOptions{}, options)
}

// openRedissonSpin opens redisson-spin. Its key is no token but the hash of an RLock, so that it is a lock of
// Redisson's family, whose waiters sleep instead of listening.
func openRedissonSpin(config goredis.Config, o RedissonSpinOptions) (*redisson.Lock, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("redisson-spin: %w", err)
	}
	sleeps := backoff{Redisson, time.Millisecond, 128 * time.Millisecond}
	line := redisson.NewPolling(func() func() time.Duration { return sleeps.sleeps(rand.Int64N) })
	herald := redisson.NewHerald(config.Nodes[0].Client, redisson.ShardedOff)
	// Blind: a waiter always sleeps between two tries.
	return redisson.NewLock(config, redisson.RSpinLock{}, line, herald, redisson.Ways{Renew: o.Watchdog, Blind: true}),
		nil
}
