package fair

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

var (
	//go:embed purge.lua
	purgeSource string
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string
	//go:embed leave.lua
	leaveSource string

	acquireScript = redis.NewScript(purgeSource + acquireSource)
	releaseScript = redis.NewScript(purgeSource + releaseSource)
	leaveScript   = redis.NewScript(leaveSource)
)

// kind is what a fair lock says to Redis.
type kind struct {
	timeout time.Duration
	leaving *leavers
}

// keys are lock, queue and deadlines, all of one hash slot.
func keys(lock string) []string {
	return []string{lock, redisson.Prefixed("redisson_lock_queue", lock), redisson.Prefixed("redisson_lock_timeout", lock)}
}

// channel is the beginning of a waiter's channel: ":" and the owner follow.
func channel(lock string) string { return redisson.Prefixed("redisson_lock__channel", lock) }

func (*kind) Channel(held *redisson.Lease) string { return channel(held.Key) + ":" + held.Owner }

func (*kind) Scripts() []*redis.Script {
	return []*redis.Script{acquireScript, releaseScript, leaveScript}
}

// wait is what a waiter adds to the deadline of the one before it, in ms: at most what it
// would wait itself. 0 means a try-lock, which does not queue.
func (k *kind) wait(held *redisson.Lease) int64 {
	if held.Wait == 0 {
		return 0
	}
	return max(min(k.timeout, held.Wait).Milliseconds(), 1)
}

func (k *kind) Acquire(ctx context.Context, client redis.Scripter, held *redisson.Lease) (taken bool, left time.Duration, err error) {
	var next redisson.Topic // tells the next waiter to look
	if held.Brief() {
		next = held.Topic(channel(held.Key))
	}
	ms, err := acquireScript.Run(ctx, client, keys(held.Key),
		held.TTL(), held.Owner, time.Now().UnixMilli(), k.wait(held), next.Channel, next.Command()).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return true, 0, nil
	case err != nil:
		return false, 0, err
	}
	return false, held.ParkFor(ms), nil
}

func (*kind) Granted(held *redisson.Lease) strategies.Lease { return held }

func (*kind) Release(ctx context.Context, client redis.Scripter, held *redisson.Lease) (freed bool, err error) {
	topic := held.Topic(channel(held.Key))
	code, err := releaseScript.Run(ctx, client, keys(held.Key),
		held.TTL(), held.Owner, time.Now().UnixMilli(), topic.Channel, topic.Command(), held.Stay()).Int()
	if errors.Is(err, redis.Nil) || err == nil && code < 0 {
		return false, strategies.ErrNotHeld
	}
	return code == 1, err
}

// Leave takes a waiter that has given up out of the queue.
func (k *kind) Leave(ctx context.Context, held *redisson.Lease) error {
	return k.leaving.leave(ctx, held, k.wait(held))
}
