package realredis

import (
	"context"
	"crypto/rand"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// Pair is a primary and its replica, which can swap roles.
type Pair struct {
	*Server
	Nodes [2]*redis.Client // one client per server, that of the first primary first
}

// StartPair starts a primary and its replica, and closes both when the test ends.
func StartPair(t testing.TB) *Pair {
	t.Helper()
	p := &Pair{Server: Start(t)}
	p.Together()
	for i, addr := range []string{p.Server.Addr, p.own.Replica.Addr()} {
		p.Nodes[i] = Look(t, &redis.Options{Addr: addr})
	}
	return p
}

// Together waits until the replica has all data of the primary.
func (p *Pair) Together() { p.t.Helper(); p.do("replicate", p.own.Replicate) }

// Addr returns a node's address.
func (p *Pair) Addr(node int) string { return p.Nodes[node].Options().Addr }

// Primary returns the client of the primary.
func (p *Pair) Primary() *redis.Client {
	if p.own.Primary() == p.own.Replica {
		return p.Nodes[1]
	}
	return p.Nodes[0]
}

// Is reports whether a node has the given role: master or slave.
func (p *Pair) Is(node int, role string) bool {
	return strings.Contains(p.Nodes[node].Info(p.t.Context(), "replication").Val(), "role:"+role)
}

// Cluster is a Redis cluster of three primaries, with a client for each.
type Cluster struct {
	Nodes []*redis.Client // one client per node

	t   testing.TB
	own []*redisserver.Own
	ids []string
}

// StartCluster starts a Cluster, which takes two seconds.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	Quiet()
	own, err := redisserver.StartCluster(t.Context(), redisserver.Options{Password: rand.Text()}, 3)
	if err != nil {
		t.Fatalf("this test needs a Redis cluster: %v", Explain(err))
	}
	t.Cleanup(func() {
		Bounded(t, "stop", func(ctx context.Context) error { return launch.Each(ctx, own, (*redisserver.Own).Close) })
	})
	return ClusterOf(t, own)
}

// ClusterOf returns the Cluster for a running cluster of three primaries.
func ClusterOf(t testing.TB, own []*redisserver.Own) *Cluster {
	t.Helper()
	c := &Cluster{t: t, own: own}
	for _, server := range own {
		node := Look(t, &redis.Options{Addr: server.Addr(), Password: server.Password})
		c.Nodes = append(c.Nodes, node)
		id, err := node.Do(t.Context(), "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.ids = append(c.ids, id)
		// On a busy machine a node may reply late. The other nodes must not consider it failed for that reason, because no
		// replica could replace it.
		if err := node.ConfigSet(t.Context(), "cluster-node-timeout", "60000").Err(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// kill ends a node as a crash would.
func (c *Cluster) kill(node int) { c.t.Helper(); Bounded(c.t, "kill", c.own[node].Kill) }

// Options returns the options of a client for the whole cluster.
func (c *Cluster) Options() redis.UniversalOptions {
	all := redis.UniversalOptions{Password: c.Nodes[0].Options().Password, IsClusterMode: true}
	for _, node := range c.Nodes {
		all.Addrs = append(all.Addrs, node.Options().Addr)
	}
	return all
}

// StartReplica starts a replica of the node with this address, and waits until all nodes know the replica and it has
// all data of the node. It returns the replica's client. takeOver kills the node and waits until the replica has
// replaced it.
func (c *Cluster) StartReplica(of string) (replica *redis.Client, takeOver func()) {
	t, nodes := c.t, slices.Clone(c.Nodes)
	t.Helper()
	at := slices.IndexFunc(nodes, func(node *redis.Client) bool { return node.Options().Addr == of })
	primary := nodes[at]
	password := primary.Options().Password
	server := Start(t, "--cluster-enabled", "yes",
		"--repl-diskless-sync-delay", "0", "--requirepass", password, "--masterauth", password)
	client := Look(t, &redis.Options{Addr: server.Addr, Password: password})
	nodes = append(nodes, client)
	host, port, _ := net.SplitHostPort(of)
	patient := func(timeout string) {
		for _, node := range nodes {
			if err := node.ConfigSet(t.Context(), "cluster-node-timeout", timeout).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	patient("60000") // on a busy machine a node may reply late
	id, err := primary.Do(t.Context(), "CLUSTER", "MYID").Text()
	if err == nil {
		err = client.ClusterMeet(t.Context(), host, port).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	know := func(what string, count int) func() bool {
		return func() bool {
			return !slices.ContainsFunc(nodes, func(node *redis.Client) bool {
				lines := node.ClusterNodes(t.Context()).Val()
				return strings.Count(lines, what) != count || strings.Contains(lines, "handshake")
			})
		}
	}
	poll.Until(t, "all nodes know each other", know("connected", len(nodes)))
	if err := client.ClusterReplicate(t.Context(), id).Err(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "all know the replica", know("slave", 1))
	says := func(what string) func() bool {
		return func() bool { return strings.Contains(client.Info(t.Context(), "replication").Val(), what) }
	}
	poll.Until(t, "the replica follows", says("master_link_status:up"))
	return client, func() {
		patient("1000")
		c.kill(at)
		poll.Until(t, "the replica is the primary", says("role:master"))
	}
}

// Move is the migration of a slot from one node to another.
type Move struct {
	*Cluster
	slot     int64
	from, to int
}

// SlotOf returns the slot of the lock whose keys match a pattern. The pattern must match the keys of exactly one held
// lock.
func (c *Cluster) SlotOf(pattern string) int64 {
	c.t.Helper()
	for _, node := range c.Nodes {
		for _, key := range node.Keys(c.t.Context(), pattern).Val() {
			return node.ClusterKeySlot(c.t.Context(), key).Val()
		}
	}
	c.t.Fatal("no lock is held")
	return 0
}

// owner returns the primary that, according to the given node, serves the slot.
func owner(t testing.TB, node *redis.Client, slot int64) redis.ClusterNode {
	t.Helper()
	slots := node.ClusterSlots(t.Context()).Val() //nolint:staticcheck // Redis 6 has no CLUSTER SHARDS
	for _, part := range slots {
		if int64(part.Start) <= slot && slot <= int64(part.End) && len(part.Nodes) > 0 {
			return part.Nodes[0]
		}
	}
	return redis.ClusterNode{}
}

// Mortal starts a replica of the node that has the keys matching a pattern, which must match the keys of exactly one
// held lock. die waits until the replica has all data of the node, and kills the node. Once the replica has replaced
// the node, die returns clients of the live nodes.
func (c *Cluster) Mortal(pattern string) (die func() (living []*redis.Client)) {
	c.t.Helper()
	slot := c.SlotOf(pattern)
	of := slices.Index(c.ids, owner(c.t, c.Nodes[0], slot).ID)
	replica, _ := c.StartReplica(c.Nodes[of].Options().Addr)
	offset := func(node *redis.Client, field string) string {
		return node.InfoMap(c.t.Context(), "replication").Val()["Replication"][field]
	}
	return func() []*redis.Client {
		c.t.Helper()
		poll.Until(c.t, "the replica has all", func() bool {
			return offset(replica, "slave_repl_offset") == offset(c.Nodes[of], "master_repl_offset")
		})
		c.kill(of)
		if err := replica.Do(c.t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err(); err != nil {
			c.t.Fatal(err)
		}
		others := append(slices.Delete(slices.Clone(c.Nodes), of, of+1), replica)
		poll.Until(c.t, "all know who has the slot", func() bool {
			return !slices.ContainsFunc(others, func(node *redis.Client) bool {
				id := owner(c.t, node, slot).ID
				return id == c.ids[of] || id == ""
			})
		})
		return others
	}
}

// Migrate starts the migration of a slot to another node. The keys of the slot stay on the old node until Carry or
// Finish moves them.
func (c *Cluster) Migrate(slot int64) *Move {
	c.t.Helper()
	m := &Move{Cluster: c, slot: slot, from: slices.Index(c.ids, owner(c.t, c.Nodes[0], slot).ID)}
	m.to = (m.from + 1) % len(c.Nodes)
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", c.ids[m.from])
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", c.ids[m.to])
	return m
}

// Carry moves at most the given number of keys of the slot to the new node, and returns how many keys remain on the old
// node.
func (m *Move) Carry(most int) int {
	m.t.Helper()
	to := m.Nodes[m.to].Options()
	host, port, _ := net.SplitHostPort(to.Addr)
	from := m.Nodes[m.from]
	for _, key := range from.ClusterGetKeysInSlot(m.t.Context(), int(m.slot), most).Val() {
		m.do(m.from, "MIGRATE", host, port, key, 0, 5000, "AUTH", to.Password)
	}
	return int(from.ClusterCountKeysInSlot(m.t.Context(), int(m.slot)).Val())
}

// Finish moves the remaining keys of the slot and announces its new node to all nodes.
func (m *Move) Finish() {
	m.t.Helper()
	for m.Carry(100) > 0 && !m.t.Failed() { // clients may add keys; a key that cannot move has failed the test
	}
	for _, n := range []int{m.to, m.from, 0, 1, 2} {
		m.do(n, "CLUSTER", "SETSLOT", m.slot, "NODE", m.ids[m.to])
	}
}

func (m *Move) do(node int, args ...any) {
	m.t.Helper()
	if err := m.Nodes[node].Do(m.t.Context(), args...).Err(); err != nil {
		m.t.Errorf("%v: %v", args, err)
	}
}
