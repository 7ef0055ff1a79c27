package redisson

import (
	"context"
	_ "embed" // the scripts
	"errors"

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

// rlock is the protocol of RLock and RSpinLock, a hash that maps the owner to its number of holds. If quiet is true, as
// for an RSpinLock, a release publishes no message.
type rlock struct{ quiet bool }

func (rlock) scripts() []*redis.Script { return []*redis.Script{acquireScript, releaseScript} }

func (rlock) acquire(ctx context.Context, client redis.Scripter, held *lease) (answer, error) {
	return held.answered(acquireScript.Run(ctx, client, []string{held.key}, held.term.Milliseconds(), held.owner))
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

// answered parses the reply to an acquire. A nil reply means that the owner has the lock; otherwise the reply is the
// lock's PTTL in ms.
func (held *lease) answered(reply *redis.Cmd) (answer, error) {
	ms, err := redisson.Integer(reply)
	switch {
	case errors.Is(err, redis.Nil):
		return answer{taken: true}, nil
	case err != nil:
		return answer{}, err
	}
	return answer{left: held.parkFor(ms)}, nil
}

// released parses the reply to a release. A nil reply means that the owner had no hold; the error is then ErrNotHeld.
func released(reply *redis.Cmd) error {
	_, err := redisson.Flag(reply)
	if errors.Is(err, redis.Nil) {
		return strategies.ErrNotHeld
	}
	return err
}

func (rlock) channel(held *lease) string { return channelOf(held.key) }

// channelOf returns the channel of a lock. The channels of fair's waiters begin with this name.
func channelOf(lock string) string { return redisson.Prefixed("redisson_lock__channel", lock) }
