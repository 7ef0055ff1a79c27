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

// node is one Redis, whether it answers, and its pending releases: one node that is down delays those of no other.
type node struct {
	client   redis.UniversalClient
	name     string                    // in errors
	silent   atomic.Pointer[time.Time] // since then no call has been answered; nil after an answer
	releases pending.Releases
}

func newNode(n goredis.Node, i int) *node {
	return &node{client: n.Client, name: cmp.Or(n.Addr(), fmt.Sprintf("node %d", i+1))}
}

// note records since when calls have had no answer. A call that was never sent shows nothing.
func (n *node) note(err error) {
	switch {
	case err == nil:
		n.silent.Store(nil)
	case n.silent.Load() == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, redis.ErrPoolTimeout):
		now := time.Now()
		n.silent.CompareAndSwap(nil, &now)
	}
}

// unreachable says whether a call's error shows that the node cannot be used. A call that
// fails outright shows it. A missing answer may be the fault of our own machine or of a pool
// that is too small: it shows nothing until no call has been answered for a while.
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

// call sends a command, and returns at the deadline of ctx also if the client ignores it. If ctx is cancelled before, a
// client gives up a wait for a connection, but not one for a reply.
func call[T any](ctx context.Context, n *node, send func() (T, error)) (T, error) {
	deadline, _ := ctx.Deadline()
	limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	return bounded.Get(limited, &n.releases.Calls, send)
}
