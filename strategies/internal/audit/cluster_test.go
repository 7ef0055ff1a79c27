package audit

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// cluster is one of three primaries, each with a client of its own.
type cluster struct {
	t     *testing.T
	addrs []string
	nodes []*redis.Client
	ids   []string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	top := redistest.StartTopology(t, "cluster:3")
	c := &cluster{t: t, addrs: top.Addrs()}
	for _, addr := range c.addrs {
		node := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
		t.Cleanup(func() { _ = node.Close() })
		c.nodes = append(c.nodes, node)
		id, err := node.Do(t.Context(), "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.ids = append(c.ids, id)
	}
	return c
}

// open opens one process of a lock that knows all nodes.
func (c *cluster) open(name string, ttl time.Duration) strategies.Locker {
	c.t.Helper()
	return openBy(c.t, name, &redis.UniversalOptions{Addrs: c.addrs, IsClusterMode: true}, ttl)
}

// move is a slot's move from one node to another.
type move struct {
	*cluster
	slot     int64
	from, to int
}

// migrate has the slot of the only lock begin to move. Its keys are still where they were.
func (c *cluster) migrate() *move {
	c.t.Helper()
	m := &move{cluster: c, from: -1}
	for n, node := range c.nodes {
		for _, key := range node.Keys(c.t.Context(), "*").Val() {
			m.from, m.slot = n, node.ClusterKeySlot(c.t.Context(), key).Val()
		}
	}
	if m.from < 0 {
		c.t.Fatal("no lock is held")
	}
	m.to = (m.from + 1) % len(c.nodes)
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", c.ids[m.from])
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", c.ids[m.to])
	return m
}

// carry moves keys, at most so many, and returns how many are left.
func (m *move) carry(most int) int {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.addrs[m.to])
	keys := m.nodes[m.from].ClusterGetKeysInSlot(m.t.Context(), int(m.slot), 100).Val()
	for _, key := range keys[:min(most, len(keys))] {
		m.do(m.from, "MIGRATE", host, port, key, 0, 5000)
	}
	return max(0, len(keys)-most)
}

// finish moves the rest and says to all whose slot it is.
func (m *move) finish() {
	m.t.Helper()
	for m.carry(100) > 0 { // new ones may have come
	}
	for _, n := range []int{m.to, m.from, 0, 1, 2} {
		m.do(n, "CLUSTER", "SETSLOT", m.slot, "NODE", m.ids[m.to])
	}
}

func (m *move) do(node int, args ...any) {
	m.t.Helper()
	if err := m.nodes[node].Do(m.t.Context(), args...).Err(); err != nil {
		m.t.Fatalf("%v: %v", args, err)
	}
}

// count sums a figure of INFO over the nodes.
func (c *cluster) count(section, figure string) (sum int64) {
	c.t.Helper()
	for _, node := range c.nodes {
		sum += info(c.t, node, section, figure)
	}
	return sum
}

// info is a figure of INFO.
func info(t *testing.T, server *redis.Client, section, figure string) (n int64) {
	t.Helper()
	text, err := server.Info(t.Context(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(text, figure+":")
	if _, err := fmt.Sscan(rest, &n); !found || err != nil {
		t.Fatalf("INFO has no %s", figure)
	}
	return n
}

// A slot that moves does not have processes connect again and again. A release meanwhile
// succeeds when the move ends, or before, and those who wait are served.
func TestMovingSlot(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, name := range []string{"handoff", "cohort"} {
		t.Run(name, func(t *testing.T) { // one after the other: both use the same slot
			holder, waiter := c.open(name, time.Hour), c.open(name, time.Hour)
			b := &book{t: t}
			lease := acquire(t, holder)
			b.enter("the holder", lease)
			w := b.wait(0, waiter)
			m := c.migrate()
			before := c.count("stats", "total_connections_received")
			disconnect(t, c.nodes[m.from]) // so that all have something to ask
			time.Sleep(500 * time.Millisecond)
			m.carry(1) // of several keys some are here and some there
			disconnect(t, c.nodes[m.from])
			time.Sleep(500 * time.Millisecond)
			released := make(chan error, 1)
			go func() {
				b.leave(lease)
				released <- release(t, lease)
			}()
			time.Sleep(500 * time.Millisecond)
			if n := c.count("stats", "total_connections_received") - before; n > 60 {
				t.Errorf("two processes made %d connections in 1.5 s of a slot's move", n)
			}
			m.finish()
			if err := <-released; err != nil {
				t.Errorf("the release returned %v", err)
			}
			w.all.Wait()
		})
	}
}

// Locks on many keys of a cluster do not keep a connection or goroutines each.
func TestManyKeysOfACluster(t *testing.T) {
	t.Parallel()
	const keys, atOnce = 400, 20
	c := startCluster(t)
	for _, name := range []string{"handoff", "cohort"} {
		t.Run(name, func(t *testing.T) {
			connections := c.count("clients", "connected_clients")
			labelled(t, func(ctx context.Context, goroutines func() int) {
				a, b := c.open(name, time.Hour), c.open(name, time.Hour)
				var all sync.WaitGroup
				for n := range atOnce {
					all.Go(func() {
						for k := n; k < keys; k += atOnce {
							contend(ctx, t, fmt.Sprint("key", k), a, b)
						}
					})
				}
				all.Wait()
				few := func() bool {
					return c.count("clients", "connected_clients")-connections <= 60 && goroutines() <= 200
				}
				for end := time.Now().Add(3 * time.Second); !few() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				}
				if !few() {
					t.Errorf("%d connections and %d goroutines are left of 2 processes that used %d keys",
						c.count("clients", "connected_clients")-connections, goroutines(), keys)
				}
			})
		})
	}
}

// contend has one process wait for the lock that another one holds.
func contend(ctx context.Context, t *testing.T, key string, holder, waiter strategies.Locker) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lease, err := holder.Acquire(ctx, key)
	if err != nil {
		t.Error(err)
		return
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		theirs, err := waiter.Acquire(ctx, key)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			return
		}
		_ = theirs.Release(ctx)
	})
	time.Sleep(5 * time.Millisecond)
	if err := lease.Release(ctx); err != nil {
		t.Errorf("%s: release: %v", key, err)
	}
	waiting.Wait()
}
