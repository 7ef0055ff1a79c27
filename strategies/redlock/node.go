package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// node is one Redis, whether it answers, and the claims that may still be on it although
// nobody holds them.
type node struct {
	client goredis.Client
	name   string                    // in errors
	silent atomic.Pointer[time.Time] // since then no call has been answered; nil after an answer

	mu     sync.Mutex
	debts  []debt
	paying bool // a goroutine takes them back
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
	return errors.Is(err, errNoAnswer) || errors.Is(err, context.Canceled) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &timeout) && timeout.Timeout()
}
