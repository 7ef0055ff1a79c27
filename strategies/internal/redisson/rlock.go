package redisson

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
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

// RLock is the plain lock: a hash of the owner and how often it holds.
type RLock struct{}

// Scripts returns the scripts of acquire and release.
func (RLock) Scripts() []*redis.Script { return []*redis.Script{acquireScript, releaseScript} }

// Acquire takes the lock if it is free or the owner's.
func (RLock) Acquire(ctx context.Context, client redis.Scripter, held *Lease) (taken bool, left time.Duration,
	err error,
) {
	ms, err := acquireScript.Run(ctx, client, []string{held.Key}, held.TTL(), held.Owner).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return true, 0, nil
	case err != nil:
		return false, 0, err
	}
	return false, held.ParkFor(ms), nil
}

// Granted returns the lease as it is.
func (RLock) Granted(held *Lease) strategies.Lease { return held }

// Release publishes "0" if the hold was the last.
func (k RLock) Release(ctx context.Context, client redis.Scripter, held *Lease) (freed bool, err error) {
	topic := held.Topic(k.Channel(held))
	return giveUpHold(ctx, client, held, topic.Channel, topic.Command())
}

// giveUpHold gives up a hold, and publishes that if told names a channel and it was the last.
func giveUpHold(ctx context.Context, client redis.Scripter, held *Lease, told ...any) (freed bool, err error) {
	code, err := releaseScript.Run(ctx, client, []string{held.Key},
		append([]any{held.TTL(), held.Owner, held.Stay()}, told...)...).Int()
	if errors.Is(err, redis.Nil) {
		return false, strategies.ErrNotHeld
	}
	return code == 1, err
}

// Channel returns the lock's channel.
func (RLock) Channel(held *Lease) string { return Prefixed("redisson_lock__channel", held.Key) }
