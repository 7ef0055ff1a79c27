package semaphore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

var (
	//go:embed acquire_expirable.lua
	acquireExpirableSource string
	//go:embed release_expirable.lua
	releaseExpirableSource string
	//go:embed extend_expirable.lua
	extendExpirableSource string

	acquireExpirableScript = redis.NewScript(acquireExpirableSource)
	releaseExpirableScript = redis.NewScript(releaseExpirableSource)
	extendExpirableScript  = redis.NewScript(extendExpirableSource)
)

// expirable are permits with an id and a deadline.
type expirable struct {
	client  redis.UniversalClient
	permits int
	look    time.Duration // how long to park at most: a permit that is taken meanwhile may run out sooner

	instance [8]byte // random
	last     atomic.Uint64
}

func newExpirable(client redis.UniversalClient, permits int, look time.Duration) *expirable {
	e := &expirable{client: client, permits: permits, look: look}
	_, _ = rand.Read(e.instance[:]) // it never fails
	return e
}

// id returns an id that nobody had before, 16 bytes like Redisson's.
func (e *expirable) id() string {
	return string(binary.BigEndian.AppendUint64(e.instance[:], e.last.Add(1)))
}

func (*expirable) scripts() []*redis.Script {
	return []*redis.Script{prepareScript, acquireExpirableScript, releaseExpirableScript}
}

func (*expirable) close() {}

func (*expirable) term(ttl time.Duration) (time.Duration, error) { return validity.TTL(ttl) }

// deadline returns when a permit taken now for ttl runs out, in epoch ms and as an instant.
func deadline(now time.Time, ttl time.Duration) (ms int64, until time.Time) {
	ms = now.UnixMilli() + max(ttl.Milliseconds(), 1)
	return ms, now.Add(time.UnixMilli(ms).Sub(now))
}

func (e *expirable) take(ctx context.Context, name string, topic redisson.Topic, ttl time.Duration) (strategies.Lease,
	time.Duration, error,
) {
	now := time.Now()
	ms, until := deadline(now, ttl)
	held := &expirablePermit{client: e.client, name: name, topic: topic, id: e.id()}
	held.until.Set(until)
	next, err := acquireExpirableScript.Run(ctx, e.client, held.keys(),
		e.permits, topic.Channel, held.id, now.UnixMilli(), ms, topic.Command()).Int64()
	taken := errors.Is(err, redis.Nil)
	switch {
	case taken && time.Now().Before(until):
		return held, 0, nil
	case taken:
		err = validity.ErrLate
	case err == nil && next < 0: // its holders have plain permits
		return nil, e.look, nil
	case err == nil:
		return nil, min(max(time.Until(time.UnixMilli(next)), time.Millisecond), e.look), nil
	}
	if indeterminate.MayHaveRun(err) {
		settle, done := indeterminate.Settle(ctx)
		defer done()
		// Nothing more can be done about a failure here: the permit runs out.
		_ = held.Release(settle)
	}
	return nil, time.Millisecond, err // after ErrLate it is tried again that soon
}

// expirablePermit is a permit held.
type expirablePermit struct {
	client   redis.UniversalClient
	name, id string
	topic    redisson.Topic
	until    validity.Until
}

// keys are the semaphore and the permits' deadlines, of one hash slot.
func (held *expirablePermit) keys() []string {
	return []string{held.name, redisson.Suffixed(held.name, "timeout")}
}

// ValidUntil returns the permit's deadline in Redis.
func (held *expirablePermit) ValidUntil() time.Time { return held.until.Get() }

// Release gives the permit back if it has not run out.
func (held *expirablePermit) Release(ctx context.Context) error {
	released, err := releaseExpirableScript.Run(ctx, held.client, held.keys(),
		held.topic.Channel, held.id, time.Now().UnixMilli(), held.topic.Command()).Bool()
	if err != nil {
		return fmt.Errorf("release %q: %w", held.name, indeterminate.Because(ctx, err))
	}
	if !released {
		return strategies.ErrNotHeld
	}
	return nil
}

// Extend prolongs the permit if it has not run out. A deadline in Redis is never made earlier: a
// command that comes late would take the permit away at once.
func (held *expirablePermit) Extend(ctx context.Context, ttl time.Duration) error {
	now := time.Now()
	ms, until := deadline(now, ttl)
	extended, err := extendExpirableScript.Run(ctx, held.client, held.keys()[1:], held.id, now.UnixMilli(), ms).Bool()
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.name, indeterminate.Because(ctx, err))
	}
	if !extended {
		return strategies.ErrNotHeld
	}
	held.until.Raise(until)
	return nil
}
