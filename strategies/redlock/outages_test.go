package redlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// dialled returns nodes whose clients ignore contexts. answer is the read timeout of the clients, such as "8s".
func (c *cluster) dialled(answer string) (nodes []goredis.Node) {
	for _, server := range c.servers {
		nodes = append(nodes, goredis.Node{Client: redistest.Dial(c.t, server.URL()+"?read_timeout="+answer)})
	}
	return nodes
}

// TestCallsEndWithTheirContext pauses all nodes. Acquire, Extend and Release must return within twice the duration of
// their context. The fastest of four calls counts, because a busy machine may delay the others.
func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	locker := c.open(goredis.Config{Nodes: c.dialled("8s")}, quickly(nil))
	lease := acquire(t, locker, "key")
	for _, server := range c.servers {
		server.Pause()
	}
	const limit = 300 * time.Millisecond
	for name, call := range map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := locker.Acquire(ctx, "other"); return err },
		"extend":  func(ctx context.Context) error { return lease.(strategies.Extender).Extend(ctx, longTTL) },
		"release": lease.Release,
	} {
		var took []time.Duration
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			began := time.Now()
			err := call(ctx)
			took = append(took, time.Since(began))
			cancel()
			if err == nil || errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("%s without an answer: %v", name, err)
			}
		}
		if fastest := slices.Min(took); fastest > 2*limit {
			t.Errorf("%s with a context of %v took %v at least", name, limit, fastest)
		}
	}
	c.resume(0, 1, 2)
	poll.Until(t, "nothing is left on the nodes", func() bool {
		return !slices.ContainsFunc(append(c.tokens("key", 0, 1, 2), c.tokens("other", 0, 1, 2)...),
			func(token string) bool { return token != "" })
	})
}

// TestCloseWithHangingNodes uses clients without a read timeout, and a node that never replies. Close must return
// within 8 s.
func TestCloseWithHangingNodes(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	locker := c.open(goredis.Config{Nodes: c.dialled("-2ns")}, quickly(nil))
	release(t, acquire(t, locker, "key"))
	c.servers[0].Pause()
	release(t, acquire(t, locker, "key"))
	began := time.Now()
	if err := locker.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	c.resume(0)
}
