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
	home       *home
	name, id   string
	fence      int64
	block      int64
	until      validity.Until
	connection int64 // on which Redis last said that it is held
	released   bool
	asked      *call  // a release whose answer has not been waited for; nil for none
	given      bool   // a release was sent while it was valid, and its answer is not known
	party      *party // to whom it goes next; nil for nobody
}

// FencingToken is larger than that of every earlier lease on the same lock.
func (held *Lease) FencingToken() int64 { return held.fence }

// ValidUntil is the TTL after the grant, by Redis's clock, less what the clocks may
// drift.
func (held *Lease) ValidUntil() time.Time { return held.until.Get() }

// Unbroken says whether the connection still stands on which Redis last said that the
// lease is held. If not, Redis may have restarted without it: Extend tells.
func (held *Lease) Unbroken() bool {
	h := held.home
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.connection == held.connection
}

// Release gives the lock to the longest waiting, without asking Redis if that is one of
// the same place and the lease is fit to be passed on. It may be called again after an
// error other than ErrNotHeld.
func (held *Lease) Release(ctx context.Context) error {
	if held.released {
		return strategies.ErrNotHeld
	}
	if held.pass() {
		held.released = true
		return nil
	}
	a, err := held.release(ctx)
	if err != nil {
		return fmt.Errorf("release %q: %w", held.name, doubt.Because(ctx, err))
	}
	held.done()
	if a.status != 'R' {
		return strategies.ErrNotHeld
	}
	return nil
}

// pass gives the lease to the next of its party, or has the party queue before the lock
// is released.
func (held *Lease) pass() bool {
	g, h := held.party, held.home
	if g == nil {
		return false
	}
	held.party = nil
	h.mu.Lock()
	defer h.mu.Unlock()
	return g.next(held.until.Get(), held.connection)
}

// disband has the party queue, if there is one.
func (held *Lease) disband() {
	if g := held.party; g != nil {
		held.party = nil
		g.disband()
	}
}

// valid notes how long it is.
func (held *Lease) valid(until time.Time) {
	held.until.Set(until)
	held.home.mu.Lock()
	defer held.home.mu.Unlock()
	held.home.hold(held.id, until)
	if g := held.party; g != nil {
		g.watch(until)
	}
}

func (held *Lease) release(ctx context.Context) (answer, error) {
	if c := held.asked; c != nil { // if it were asked again Redis might not know any more
		select {
		case <-c.done:
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
		held.asked = nil
		if c.err == nil {
			return c.answer, nil
		}
	}
	valid := time.Now().Before(held.until.Get())
	a, c, err := held.run(ctx, releaseScript, held.id, "", "")
	if err == nil && a.status != 'R' && (held.given || valid && c.again) {
		a.status = 'R' // it was carried out before, and Redis remembers but the last
	}
	held.given = held.given || valid && c.unanswered
	return a, err
}

// done notes that Redis knows it no more.
func (held *Lease) done() {
	held.released = true
	held.home.mu.Lock()
	defer held.home.mu.Unlock()
	delete(held.home.held, held.id)
}

// run asks on the connection, or by go-redis's client once that is closed.
func (held *Lease) run(ctx context.Context, s *script, args ...string) (answer, *call, error) {
	c, err := held.home.do(ctx, s, held.name, args...)
	if err == nil {
		return c.answer, c, nil
	}
	if s == releaseScript && c.underWay {
		held.asked = c
	}
	if !errors.Is(err, strategies.ErrClosed) {
		return answer{}, c, err
	}
	h := held.home
	all := []any{h.base, h.publish, h.process, "0"}
	for _, arg := range args {
		all = append(all, arg)
	}
	text, err := s.Run(ctx, h.config.Nodes[0].Client, []string{held.name}, all...).Text()
	c.connection = 0
	return parseAnswer([]byte(text)), c, err
}

// Extend makes the lease valid for ttl from now on. Until it has returned, and after an
// error other than ErrNotHeld, it is valid until when it was, or for ttl if that ends
// sooner. A lease lasts for a hundred years at most.
func (held *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if held.released {
		return strategies.ErrNotHeld
	}
	sent := time.Now()
	ms := min(max(ttl, time.Millisecond), longest).Milliseconds()
	ttl = time.Duration(ms) * time.Millisecond
	until := sent.Add(ttl - drift(ttl))
	if until.Before(held.until.Get()) { // Redis may shorten the lease and never say so
		held.valid(until)
	}
	a, c, err := held.run(ctx, extendScript, held.id, strconv.FormatInt(ms, 10), keep(held.home.config.TTL))
	if err != nil || a.status != 'R' {
		held.disband() // it is lost, or may last for longer than is known here
	}
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.name, doubt.Because(ctx, err))
	}
	if a.status != 'R' {
		return strategies.ErrNotHeld
	}
	held.valid(until)
	held.connection = c.connection
	return nil
}
