package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/pending"
)

// node is one Redis server with its state and its pending releases. The pending releases are separate for each node, so
// that a node that is down does not delay the releases on other nodes.
type node struct {
	client   redis.UniversalClient
	name     string                    // the name in errors
	silent   atomic.Pointer[time.Time] // when the first call since the last success failed; nil after a success
	releases pending.Releases
}

func newNode(n goredis.Node, i int) *node {
	return &node{client: n.Client, name: cmp.Or(n.Addr(), fmt.Sprintf("node %d", i+1))}
}

// note records the result of a call, so that the node's state shows since when it has not replied. A call that was
// never sent does not count.
func (n *node) note(err error) {
	switch {
	case err == nil:
		n.silent.Store(nil)
	case n.silent.Load() == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, redis.ErrPoolTimeout):
		now := time.Now()
		n.silent.CompareAndSwap(nil, &now)
	}
}

// unreachable reports whether a call's error shows that the node cannot be used. An error other than a timeout always
// does. A timeout may be caused by this machine or by a pool that is too small, so it counts only if the node has
// replied to no call for patience.
func (n *node) unreachable(err error) bool {
	if !late(err) {
		return true
	}
	since := n.silent.Load()
	return since != nil && time.Since(*since) >= patience
}

func late(err error) bool {
	var timeout net.Error
	return errors.Is(err, errNoAnswer) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &timeout) && timeout.Timeout()
}

// call sends a command and returns at the deadline of ctx even if the client ignores the deadline. If ctx is cancelled
// before its deadline, the client stops waiting for a connection, but not for a reply.
func call[T any](ctx context.Context, n *node, send func() (T, error)) (T, error) {
	deadline, _ := ctx.Deadline()
	limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	return bounded.Get(limited, &n.releases.Calls, send)
}
