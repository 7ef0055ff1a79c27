package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// lease is a node in a lock's queue. The first node of the queue holds the lock.
type lease struct {
	locker   *Locker
	session  *session
	key      string
	lock     string        // the path of the lock's node
	entered  chan struct{} // closed when the node exists, or will never exist
	name     string        // the node's name; "" if there is none
	token    int64
	released chan struct{} // closed when the deletion has ended; nil before the first Release
	err      error         // the error of the deletion
	over     bool          // a Release has returned nil or ErrNotHeld
}

func (h *lease) path() string { return h.lock + "/" + h.name }

// FencingToken returns the number of the last transaction that changed the queue before the lock was granted.
func (h *lease) FencingToken() int64 { return h.token }

// Lost returns a channel that is closed when the session is lost (see gozk.Session.Lost).
func (h *lease) Lost() <-chan struct{} { return h.session.Lost() }

// Release deletes the node. If ctx ends first, the deletion continues in the background, because otherwise the session
// would keep the lock. A second call of Release waits for the deletion.
func (h *lease) Release(ctx context.Context) error {
	if h.over {
		return strategies.ErrNotHeld
	}
	if h.released == nil {
		released := make(chan struct{})
		if h.session.Go(func(life context.Context) {
			defer close(released)
			h.err = h.session.Delete(life, h.path())
			h.locker.mu.Lock()
			defer h.locker.mu.Unlock()
			h.session.leases--
		}) {
			h.released = released
		}
	}
	err := gozk.ErrOver
	if h.released != nil {
		select {
		case <-h.released:
			err = h.err
		case <-ctx.Done():
			return fmt.Errorf("release %q: %w", h.key, ctx.Err())
		}
	}
	if errors.Is(err, gozk.ErrOver) {
		err = h.afterwards(ctx)
	}
	switch {
	case err == nil:
		h.over = true
		return nil
	case errors.Is(err, zk.ErrNoNode):
		h.over = true
		return strategies.ErrNotHeld
	}
	return fmt.Errorf("release %q: %w", h.key, err)
}

// afterwards deletes the node in a new session after the lease's session is over. The node may still exist if the
// Locker was closed and the server has not ended the old session yet.
func (h *lease) afterwards(ctx context.Context) error {
	s, err := h.locker.node.Connect(ctx, h.locker.config.TTL)
	if err != nil {
		return fmt.Errorf("connect again after the session has ended: %w", err)
	}
	defer s.Close()
	return s.Delete(ctx, h.path())
}
