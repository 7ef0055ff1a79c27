package handoff

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
)

// Fences are the tokens that are reserved for the lease: n from first on. The holder
// may give them out, in order, while the lease is valid.
func (held *Lease) Fences() (first, n int64) { return held.fence, held.block }

// Turn is a place in the queue, taken by Requeue.
type Turn struct {
	home *home
	seat *seat
}

// Wait returns the next lease. When ctx ends the place is given up. It must be called
// once, and the Locker not be closed before it has returned.
func (t *Turn) Wait(ctx context.Context) (*Lease, error) {
	lease, err := t.home.await(ctx, t.seat)
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", t.seat.name, doubt.Because(ctx, err))
	}
	return lease, nil
}

// Requeue releases the lock, to those of its place if some wait there, and takes the
// last place in its queue, in one script, with n tokens to be reserved. Where others wait
// it costs one round trip less than Release and Acquire; where nobody does, the Turn has
// its lease at once.
//
// With ErrNotHeld, which says that the lease had been lost, there is a Turn too. After
// any other error there is none, and whether the lock is still held is not known:
// Release tells.
func (held *Lease) Requeue(ctx context.Context, n int64) (*Turn, error) {
	if held.released {
		return nil, strategies.ErrNotHeld
	}
	held.disband()
	h := held.home
	c := &call{home: h, lock: held.name, done: make(chan struct{}, 1)}
	sent, valid := false, time.Now().Before(held.until.Get())
	s, err := h.admit(held.name, max(n, 1), false, func(p *place, now time.Time) {
		h.config.Probe.Attempt()
		h.live(now)
		h.stand(p)
		c.sent = now
		sent = h.run(c, releaseScript, held.name, held.id, "", p.entry)
		h.wake()
	})
	if err != nil {
		return nil, fmt.Errorf("release %q: %w", held.name, err)
	}
	h.line.Flush()
	var a answer
	if sent {
		select {
		case <-c.done:
			a, err = c.answer, c.err
		case <-ctx.Done():
			err = ctx.Err()
			held.asked = c
		}
	}
	if !sent || err != nil && ctx.Err() == nil {
		// Unsent, unheard or refused: the one may be repeated, the other is asked for.
		held.given = held.given || sent && valid && errors.Is(err, line.ErrBroken)
		if a, err = held.release(ctx); err == nil {
			h.doubt(s.place)
		}
	}
	if err != nil {
		h.abandon(ctx, s)
		return nil, fmt.Errorf("release %q: %w", held.name, doubt.Because(ctx, err))
	}
	held.done()
	t := &Turn{h, s}
	if a.status != 'R' {
		return t, strategies.ErrNotHeld
	}
	return t, nil
}

// doubt has Redis asked whether a place is queued.
func (h *home) doubt(p *place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connection != 0 && h.places[p.id] == p && p.connection == h.connection {
		h.resume(time.Now(), func(o *place) bool { return o == p })
	}
	h.line.Flush()
}
