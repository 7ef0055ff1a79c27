package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// lease is the first place in a queue.
type lease struct {
	place
	locker   *Locker
	lost     <-chan struct{}
	released chan struct{} // closed when the node is gone, or the session; nil before the first Release
	err      error         // of the release
	told     bool          // the result has been returned
}

// timed is a lease on a standalone server.
type timed struct{ *lease }

// granted makes a lease of the first place.
func (l *Locker) granted(p place) (strategies.Lease, error) {
	if !l.holds(p.session) {
		p.leave()
		return nil, strategies.ErrClosed
	}
	held := &lease{place: p, locker: l, lost: p.session.Lost()}
	if l.node.Standalone {
		return timed{held}, nil
	}
	return held, nil
}

// FencingToken is the id of the transaction that made the node.
func (h *lease) FencingToken() int64 { return h.token }

// Lost returns a channel that is closed when the session is lost; see gozk.Session.Lost.
func (h *lease) Lost() <-chan struct{} { return h.lost }

// ValidUntil returns when the newest answered request was sent, plus the session's timeout.
func (h timed) ValidUntil() time.Time { return h.session.Until() }

// Release deletes the node. If ctx ends, that goes on in the background, since the session
// would keep the lease otherwise; a second call waits for it.
func (h *lease) Release(ctx context.Context) error {
	if h.told {
		return strategies.ErrNotHeld
	}
	if h.released == nil {
		released := make(chan struct{})
		begun := h.session.Go(func(life context.Context) {
			defer close(released)
			there, err := h.remove(life)
			if err == nil && !there {
				err = strategies.ErrNotHeld
			}
			h.locker.released(h.session)
			h.err = err
		})
		if !begun {
			return h.afterwards(ctx)
		}
		h.released = released
	}
	select {
	case <-h.released:
	case <-ctx.Done():
		return fmt.Errorf("release %q: %w", h.key, ctx.Err())
	}
	if errors.Is(h.err, gozk.ErrOver) { // the session ended during the release
		return h.afterwards(ctx)
	}
	h.told = true
	if h.err != nil && !errors.Is(h.err, strategies.ErrNotHeld) {
		return fmt.Errorf("release %q: %w", h.key, h.err)
	}
	return h.err
}

// afterwards releases when the session is over: after the Locker's Close the server may not
// know that yet.
func (h *lease) afterwards(ctx context.Context) error {
	s, err := h.locker.node.Connect(ctx, h.locker.config.TTL)
	if err != nil {
		return fmt.Errorf("release %q after its session: %w", h.key, err)
	}
	defer s.Close()
	err = s.Delete(ctx, h.path())
	switch {
	case err == nil:
		h.told = true
		return nil
	case errors.Is(err, zk.ErrNoNode):
		h.told = true
		return strategies.ErrNotHeld
	}
	return fmt.Errorf("release %q after its session: %w", h.key, err)
}
