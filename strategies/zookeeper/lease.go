package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// lease is the first place in a queue.
type lease struct {
	*place
	locker   *Locker
	key      string
	released chan struct{} // closed when the node is gone, or the session; nil before the first Release
	err      error         // of the release
	told     bool          // the result has been returned
}

// FencingToken is the last transaction of the queue when the lock was granted.
func (h *lease) FencingToken() int64 { return h.token }

// Lost returns a channel that is closed when the session is lost; see gozk.Session.Lost.
func (h *lease) Lost() <-chan struct{} { return h.session.Lost() }

// Release deletes the node. If ctx ends, that goes on in the background, since the session
// would keep the lease otherwise; a second call waits for it.
func (h *lease) Release(ctx context.Context) error {
	if h.told {
		return strategies.ErrNotHeld
	}
	if h.released == nil {
		released := make(chan struct{})
		if !h.session.Go(func(life context.Context) {
			defer close(released)
			var there bool
			if there, h.err = h.remove(life); h.err == nil && !there {
				h.err = strategies.ErrNotHeld
			}
			h.locker.mu.Lock()
			defer h.locker.mu.Unlock()
			h.session.leases--
		}) {
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
	return h.settled(h.err)
}

// afterwards releases when the session is over: after the Locker's Close the server may not
// know that yet.
func (h *lease) afterwards(ctx context.Context) error {
	s, err := h.locker.node.Connect(ctx, h.locker.config.TTL)
	if err != nil {
		return fmt.Errorf("release %q after its session: %w", h.key, err)
	}
	defer s.Close()
	if err = s.Delete(ctx, h.path()); errors.Is(err, zk.ErrNoNode) {
		err = strategies.ErrNotHeld
	}
	return h.settled(err)
}

// settled returns the result of a release.
func (h *lease) settled(err error) error {
	if err == nil || errors.Is(err, strategies.ErrNotHeld) {
		h.told = true
		return err
	}
	return fmt.Errorf("release %q: %w", h.key, err)
}
