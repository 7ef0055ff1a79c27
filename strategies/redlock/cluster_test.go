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
	// longTTL is the TTL of leases that must not expire during a test.
	longTTL = time.Minute
	// patience is how long a test waits for an expected event.
	patience = 20 * time.Second
)

// cluster is a set of independent servers. look has a client for inspecting each.
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
	// hangs is the node timeout of tests in which nodes hang. It is short, because these tests wait until it has passed.
	// On a busy machine a living node may miss it, which costs another round.
	hangs = 100 * time.Millisecond
	// lives is the node timeout of tests that need the reply of every living node.
	lives = time.Second
)

// quickly returns the default Options with short sleeps between rounds, so that tests take little time, and a node
// timeout of 5 s, so that every living node replies in time. change, if not nil, then edits these Options.
func quickly(change func(*redlock.Options)) redlock.Options {
	options := redlock.Defaults()
	options.MinDelay, options.MaxDelay = time.Millisecond, 10*time.Millisecond
	options.NodeTimeout = 5 * time.Second
	if change != nil {
		change(&options)
	}
	return options
}

// impatiently and withLongNodeTimeout are arguments of quickly. They set the node timeout to hangs and lives,
// respectively.
func impatiently(o *redlock.Options)         { o.NodeTimeout = hangs }
func withLongNodeTimeout(o *redlock.Options) { o.NodeTimeout = lives }

// open opens a Locker and calls its Prepare. If config has no nodes, the Locker uses all servers. If config has no TTL,
// it is longTTL.
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

// tokens returns the value of key on each of the given nodes, or "" for a node without the key.
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

func (c *cluster) assertNoKey(key string, nodes ...int) {
	c.t.Helper()
	for i, token := range c.tokens(key, nodes...) {
		if token != "" {
			c.t.Errorf("node %d still has %q", nodes[i], token)
		}
	}
}

// waitUntilNoKey waits until none of the given nodes has the key, because late grants are released in the background.
func (c *cluster) waitUntilNoKey(key string, nodes ...int) {
	c.t.Helper()
	poll.Until(c.t, "nothing is left on the nodes", func() bool {
		return strings.Join(c.tokens(key, nodes...), "") == ""
	})
}

// resume resumes paused nodes, and waits until they have read the commands that were sent during the pause. It sends
// each node two PINGs: the first may overtake these commands, but the second may not.
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

// nothingLeft resumes the hung nodes, and waits until no node has the key "key", which late grants may have set. It
// then closes the Locker and checks this again.
func (c *cluster) nothingLeft(locker *redlock.Locker, hung ...int) {
	c.t.Helper()
	c.resume(hung...)
	var all []int
	for i := range c.servers {
		all = append(all, i)
	}
	c.waitUntilNoKey("key", all...)
	if err := locker.Close(); err != nil {
		c.t.Fatal(err)
	}
	c.assertNoKey("key", all...)
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
