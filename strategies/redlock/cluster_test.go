package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/redlock"
)

func TestMain(m *testing.M) {
	poll.ManyAtATime()
	goleak.VerifyTestMain(m)
}

const (
	// longTTL is the TTL of leases that must not help by running out.
	longTTL = time.Minute
	// patience is how long a test waits for an expected event.
	patience = 20 * time.Second
)

// cluster is a set of independent servers with a client for inspecting each.
type cluster struct {
	t       *testing.T
	servers []*redistest.Server
	look    []redis.UniversalClient
}

func start(t *testing.T, n int) *cluster {
	t.Helper()
	c := &cluster{t: t}
	for range n {
		server := redistest.Start(t)
		c.servers = append(c.servers, server)
		c.look = append(c.look, server.Client(t))
	}
	return c
}

func (c *cluster) nodes() []goredis.Node {
	var nodes []goredis.Node
	for _, server := range c.servers {
		nodes = append(nodes, server.Node(c.t))
	}
	return nodes
}

const (
	// hangs is the node timeout of tests in which nodes hang, because the tests wait for it. On a busy machine a living
	// node may be late too, which costs another round.
	hangs = 100 * time.Millisecond
	// lives is the node timeout of tests in which each living node must answer in time.
	lives = time.Second
)

// quickly retries often, so that tests take little time. Its node timeout is one
// that a living node keeps on any machine.
func quickly(change func(*redlock.Options)) redlock.Options {
	options := redlock.Defaults()
	options.MinDelay, options.MaxDelay = time.Millisecond, 10*time.Millisecond
	options.NodeTimeout = 5 * time.Second
	if change != nil {
		change(&options)
	}
	return options
}

// impatiently and bravely are for quickly where nodes hang.
func impatiently(o *redlock.Options) { o.NodeTimeout = hangs }
func bravely(o *redlock.Options)     { o.NodeTimeout = lives }

// open opens an instance with connections to all nodes.
func (c *cluster) open(config goredis.Config, options redlock.Options) *redlock.Locker {
	c.t.Helper()
	if config.Nodes == nil {
		config.Nodes = c.nodes()
	}
	if config.TTL == 0 {
		config.TTL = longTTL
	}
	locker, err := redlock.Open(config, options)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = locker.Close() })
	if err := locker.Prepare(c.t.Context(), nil); err != nil {
		c.t.Fatal(err)
	}
	return locker
}

// tokens returns the values of key on the given nodes; "" means none.
func (c *cluster) tokens(key string, nodes ...int) []string {
	c.t.Helper()
	var tokens []string
	for _, i := range nodes {
		token, err := c.look[i].Get(context.Background(), key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			c.t.Fatalf("look at node %d: %v", i, err)
		}
		tokens = append(tokens, token)
	}
	return tokens
}

// nothingAt checks that none of the given nodes has the key.
func (c *cluster) nothingAt(key string, nodes ...int) {
	c.t.Helper()
	for i, token := range c.tokens(key, nodes...) {
		if token != "" {
			c.t.Errorf("node %d still has %q", nodes[i], token)
		}
	}
}

// soonNothingAt waits until none of the nodes has the key, because late grants are released in the background.
func (c *cluster) soonNothingAt(key string, nodes ...int) {
	c.t.Helper()
	poll.Until(c.t, "nothing is left on the nodes", func() bool {
		return strings.Join(c.tokens(key, nodes...), "") == ""
	})
}

// resume lets nodes continue, and returns when they have read the commands that were sent during the pause: the
// answer to one command may overtake them, the answer to the next cannot.
func (c *cluster) resume(nodes ...int) {
	c.t.Helper()
	for _, i := range nodes {
		c.servers[i].Resume()
		for range 2 {
			if err := c.look[i].Ping(context.Background()).Err(); err != nil {
				c.t.Fatalf("ping node %d: %v", i, err)
			}
		}
	}
}

// nothingLeft lets the nodes that hang go on, and expects that what they answered too late is taken back, at the
// latest when the Locker is closed.
func (c *cluster) nothingLeft(locker *redlock.Locker, hung ...int) {
	c.t.Helper()
	c.resume(hung...)
	var all []int
	for i := range c.servers {
		all = append(all, i)
	}
	c.soonNothingAt("key", all...)
	if err := locker.Close(); err != nil {
		c.t.Fatal(err)
	}
	c.nothingAt("key", all...)
}

// occupy gives the key to another owner on the given nodes.
func (c *cluster) occupy(key string, nodes ...int) {
	c.t.Helper()
	for _, i := range nodes {
		if err := c.look[i].Set(context.Background(), key, "a stranger", 0).Err(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func acquire(t *testing.T, locker strategies.Locker, key string) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := locker.Acquire(ctx, key)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lease
}

func release(t *testing.T, lease strategies.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatalf("release: %v", err)
	}
}
