package semaphore

import (
	"context"
	_ "embed" // the scripts
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

var (
	//go:embed prepare.lua
	prepareSource string
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string
	//go:embed extend.lua
	extendSource string

	prepareScript = redis.NewScript(prepareSource)
	acquireScript = redis.NewScript(acquireSource)
	releaseScript = redis.NewScript(releaseSource)
	extendScript  = redis.NewScript(extendSource)
)

// permit is a permit held.
type permit struct {
	client   goredis.Client
	name     string
	topic    redisson.Topic
	id       string // of an expirable one, 16 bytes as Redisson's; else ""
	released bool
}

// keys are the semaphore and, if permits expire, their deadlines, of one hash slot.
func (held *permit) keys() []string {
	if held.id == "" {
		return []string{held.name}
	}
	return []string{held.name, redisson.Suffixed(held.name, "timeout")}
}

// Release gives the permit back, if it has not run out. A plain permit is given back once: Redis
// could not tell a second release from that of another holder.
func (held *permit) Release(ctx context.Context) error {
	if held.released {
		return strategies.ErrNotHeld
	}
	there, err := held.giveBack(ctx)
	if err != nil {
		// If it may have been carried out a plain permit counts as released: a permit too few is
		// the lesser evil.
		held.released = held.id == "" && indeterminate.MayHaveRun(err)
		return fmt.Errorf("release %q: %w", held.name, indeterminate.Because(ctx, err))
	}
	held.released = true
	if !there {
		return strategies.ErrNotHeld
	}
	return nil
}

func (held *permit) giveBack(ctx context.Context) (bool, error) {
	args := []any{held.topic.Channel, held.topic.Command()}
	if held.id != "" {
		args = append(args, held.id, time.Now().UnixMilli())
	}
	return releaseScript.Run(ctx, held.client, held.keys(), args...).Bool()
}

// expirable is a permit that runs out.
type expirable struct {
	permit
	until validity.Until
}

// ValidUntil returns the permit's deadline in Redis.
func (held *expirable) ValidUntil() time.Time { return held.until.Get() }

// Extend prolongs the permit if it has not run out. A deadline in Redis is never made earlier: a
// command that comes late would take the permit away at once.
func (held *expirable) Extend(ctx context.Context, ttl time.Duration) error {
	now := time.Now()
	ms, until := deadline(now, ttl)
	extended, err := extendScript.Run(ctx, held.client, held.keys()[1:], held.id, now.UnixMilli(), ms).Bool()
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.name, indeterminate.Because(ctx, err))
	}
	if !extended {
		return strategies.ErrNotHeld
	}
	held.until.Raise(until)
	return nil
}

// deadline returns when a permit taken now for ttl runs out, in epoch ms and as an instant.
func deadline(now time.Time, ttl time.Duration) (ms int64, until time.Time) {
	ms = now.UnixMilli() + max(ttl.Milliseconds(), 1)
	return ms, now.Add(time.UnixMilli(ms).Sub(now))
}
