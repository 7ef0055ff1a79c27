package handoff

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Lease is a lock that was handed over. It is a strategies.Lease, Extender, Fenced
// and Timed.
type Lease struct {
	home     *home
	name, id string
	fence    int64
	block    int64
	until    validity.Until
	released bool
}

// FencingToken is larger than that of every earlier lease on the same lock.
func (held *Lease) FencingToken() int64 { return held.fence }

// ValidUntil is the TTL after the grant, by Redis's clock, less what the clocks may
// drift.
func (held *Lease) ValidUntil() time.Time { return held.until.Get() }

// Release gives the lock to the longest waiting. It may be called again after an
// error other than ErrNotHeld.
func (held *Lease) Release(ctx context.Context) error {
	if held.released {
		return strategies.ErrNotHeld
	}
	a, err := held.release(ctx)
	if err != nil {
		return fmt.Errorf("release %q: %w", held.name, doubt.Because(ctx, err))
	}
	held.released = true
	if a.status != 'R' {
		return strategies.ErrNotHeld
	}
	return nil
}

func (held *Lease) release(ctx context.Context) (answer, error) {
	return held.run(ctx, releaseScript, held.id, "", "")
}

// run asks on the connection, or by go-redis's client once that is closed.
func (held *Lease) run(ctx context.Context, s *script, args ...string) (answer, error) {
	c, err := held.home.do(ctx, s, held.name, args...)
	if err == nil {
		return c.answer, nil
	}
	if !errors.Is(err, strategies.ErrClosed) {
		return answer{}, err
	}
	h := held.home
	all := []any{h.base, h.publish, h.process, "0"}
	for _, arg := range args {
		all = append(all, arg)
	}
	text, err := s.Run(ctx, h.config.Nodes[0].Client, []string{held.name}, all...).Text()
	return parseAnswer([]byte(text)), err
}

// Extend renews the lease.
func (held *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	sent := time.Now()
	ms := max(ttl.Milliseconds(), 1)
	a, err := held.run(ctx, extendScript, held.id, strconv.FormatInt(ms, 10), keep(ttl))
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.name, doubt.Because(ctx, err))
	}
	if a.status != 'R' {
		return strategies.ErrNotHeld
	}
	ttl = time.Duration(ms) * time.Millisecond
	held.until.Set(sent.Add(ttl - drift(ttl)))
	return nil
}
