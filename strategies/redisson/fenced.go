package redisson

import (
	"context"
	_ "embed" // the script

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

// tokenPrefix is the prefix of the key of the counter from which fenced draws its fencing tokens.
const tokenPrefix = "redisson_lock_token"

var (
	//go:embed fenced_acquire.lua
	fencedAcquireSource string
	fencedAcquire       = redis.NewScript(fencedAcquireSource)
)

// counted is the protocol of fenced. It is rlock with an acquire that also draws a fencing token.
type counted struct{ rlock }

// fencedLease is a lease of fenced. It implements strategies.Fenced.
type fencedLease struct{ *lease }

// FencingToken returns a number that is larger than the token of every earlier lease on the same key, as long as Redis
// keeps its data.
func (held fencedLease) FencingToken() int64 { return held.fence }

func (k counted) scripts() []*redis.Script { return append(k.rlock.scripts(), fencedAcquire) }

func (counted) granted(held *lease) strategies.Lease { return fencedLease{held} }

func (counted) acquire(ctx context.Context, client redis.Scripter, held *lease) (answer, error) {
	keys := []string{held.key, redisson.Prefixed(tokenPrefix, held.key)}
	reply, err := fencedAcquire.Run(ctx, client, keys, held.term.Milliseconds(), held.owner).Result()
	if err != nil {
		return answer{}, err
	}
	if pair, is := reply.([]any); is && len(pair) == 2 {
		second, is := pair[1].(int64)
		switch {
		case is && pair[0] == int64(0):
			return answer{left: held.parkFor(second)}, nil
		case is && pair[0] == int64(1):
			return answer{taken: true, fence: second}, nil
		}
	}
	return answer{}, redisson.Unexpected(reply, "{1, token} or {0, PTTL}")
}
