package redsync

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4/redis"
)

// nodes records what each node last answered to one caller.
type nodes struct {
	mu   sync.Mutex
	lost []error // by node; nil for one that answers
	end  context.CancelCauseFunc
}

type nodesKey struct{}

// watch returns a context that ends once so many of n nodes cannot be reached that no
// majority is left; its cause is the reason. A node that is only slow counts as reachable.
func watch(ctx context.Context, n int) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	ctx = context.WithValue(ctx, nodesKey{}, &nodes{lost: make([]error, n), end: end})
	return ctx, func() { end(nil) }
}

// answered records how a try ended on one node.
func (n *nodes) answered(node int, err error) {
	if errors.Is(err, context.Canceled) || isLate(err) {
		return
	}
	if err != nil {
		err = fmt.Errorf("node %d: %w", node, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost[node] = err
	left := 0
	for _, lost := range n.lost {
		if lost == nil {
			left++
		}
	}
	if left <= len(n.lost)/2 {
		n.end(errors.Join(n.lost...))
	}
}

// pool hands out one node's connections and sees how the tries end.
type pool struct {
	redis.Pool
	node int
}

// Get returns a connection for the caller of that context.
func (p pool) Get(ctx context.Context) (redis.Conn, error) {
	c, err := p.Pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	caller, _ := ctx.Value(nodesKey{}).(*nodes) // nil for a release or extension
	return conn{c, p.node, caller}, nil
}

type conn struct {
	redis.Conn
	node   int
	caller *nodes
}

// SetNX is redsync's try.
func (c conn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	ok, err := c.Conn.SetNX(name, value, expiry)
	if c.caller != nil {
		c.caller.answered(c.node, err)
	}
	return ok, err
}
