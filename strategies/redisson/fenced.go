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
type counted struct{ rlock }

// fencedLease is one of the family's, with its token.
type fencedLease struct{ *lease }

// FencingToken is larger than that of every earlier lease on the same key.
func (held fencedLease) FencingToken() int64 { return held.fence }

func (k counted) scripts() []*redis.Script { return append(k.rlock.scripts(), fencedAcquire) }

func (counted) granted(held *lease) strategies.Lease { return fencedLease{held} }

func (counted) acquire(
	ctx context.Context, client redis.Scripter, held *lease,
) (taken bool, left time.Duration, err error) {
	keys := []string{held.key, redisson.Prefixed(tokenPrefix, held.key)}
	reply, err := fencedAcquire.Run(ctx, client, keys, held.term.Milliseconds(), held.owner).Int64Slice()
	switch {
	case err != nil:
		return false, 0, err
	case len(reply) != 2:
		return false, 0, fmt.Errorf("the acquire script replied %v, want two numbers", reply)
	case reply[0] == 0:
		return false, held.parkFor(reply[1]), nil
	}
	held.fence = reply[1]
	return true, 0, nil
}
