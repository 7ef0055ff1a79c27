package redisson

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string
	//go:embed renew.lua
	renewSource string

	acquireScript = redis.NewScript(acquireSource)
	releaseScript = redis.NewScript(releaseSource)
	renewScript   = redis.NewScript(renewSource)
)

// rlock is the plain lock: a hash of the owner and how often it holds. That of an RSpinLock is
// quiet: it tells nobody of a release.
type rlock struct{ quiet bool }

func (rlock) scripts() []*redis.Script { return []*redis.Script{acquireScript, releaseScript} }

func (rlock) acquire(
	ctx context.Context, client redis.Scripter, held *lease,
) (taken bool, left time.Duration, err error) {
	ms, err := acquireScript.Run(ctx, client, []string{held.key}, held.term.Milliseconds(), held.owner).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return true, 0, nil
	case err != nil:
		return false, 0, err
	}
	return false, held.parkFor(ms), nil
}

func (rlock) granted(held *lease) strategies.Lease { return held }

func (k rlock) release(ctx context.Context, client redis.Scripter, held *lease, one bool) error {
	topic := redisson.Topic{}
	if !k.quiet {
		topic = held.topic(k.channel(held))
	}
	return released(releaseScript.Run(ctx, client, []string{held.key},
		held.term.Milliseconds(), held.owner, one, topic.Channel, topic.Command()))
}

// released reads the reply of a release: nil if the owner had no hold.
func released(reply *redis.Cmd) error {
	if errors.Is(reply.Err(), redis.Nil) {
		return strategies.ErrNotHeld
	}
	return reply.Err()
}

func (rlock) channel(held *lease) string { return channelOf(held.key) }

// channelOf returns the channel of a lock; those of fair's waiters begin with it.
func channelOf(lock string) string { return redisson.Prefixed("redisson_lock__channel", lock) }
