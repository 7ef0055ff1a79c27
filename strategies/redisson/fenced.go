package redisson

import (
	"context"
	_ "embed" // the script
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

// tokenPrefix names the counter of fenced.
const tokenPrefix = "redisson_lock_token"

var (
	//go:embed fenced_acquire.lua
	fencedAcquireSource string
	fencedAcquire       = redis.NewScript(fencedAcquireSource)
)

// counted differs from the plain lock by its acquire, and by the token of its leases.
type counted struct{ redisson.RLock }

// fencedLease is one of the family's, with its token.
type fencedLease struct{ *redisson.Lease }

// FencingToken is larger than that of every earlier lease on the same key.
func (held fencedLease) FencingToken() int64 { return held.Fence }

func (k counted) Scripts() []*redis.Script { return append(k.RLock.Scripts(), fencedAcquire) }

func (counted) Granted(held *redisson.Lease) strategies.Lease { return fencedLease{held} }

func (counted) Acquire(
	ctx context.Context, client redis.Scripter, held *redisson.Lease,
) (taken bool, left time.Duration, err error) {
	keys := []string{held.Key, redisson.Prefixed(tokenPrefix, held.Key)}
	reply, err := fencedAcquire.Run(ctx, client, keys, held.TTL(), held.Owner).Int64Slice()
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
