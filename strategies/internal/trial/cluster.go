package trial

import (
	"net"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// Cluster is a Redis cluster of three primaries, with a client for each.
type Cluster struct {
	Nodes []*redis.Client // one to look at each

	t   testing.TB
	ids []string
}

// StartCluster starts a Cluster, which takes two seconds.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	return ClusterOf(t, redistest.StartTopology(t, "cluster:3"))
}

// ClusterOf looks at a cluster of three primaries that runs.
func ClusterOf(t testing.TB, top *redistest.Topology) *Cluster {
	t.Helper()
	c := &Cluster{t: t, Nodes: top.Clients(t)}
	for _, node := range c.Nodes {
		id, err := node.Do(t.Context(), "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.ids = append(c.ids, id)
		// No replica could take over from a node that does not answer in time on a busy
		// machine.
		if err := node.ConfigSet(t.Context(), "cluster-node-timeout", "60000").Err(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Options are those of a client for the whole cluster.
func (c *Cluster) Options() redis.UniversalOptions {
	all := redis.UniversalOptions{Password: c.Nodes[0].Options().Password, IsClusterMode: true}
	for _, node := range c.Nodes {
		all.Addrs = append(all.Addrs, node.Options().Addr)
	}
	return all
}

// Move is a slot's move from one node to another.
type Move struct {
	*Cluster
	slot     int64
	from, to int
}

// From is the node that the slot leaves.
func (m *Move) From() *redis.Client { return m.Nodes[m.from] }

// SlotInUse returns the slot of the only lock that is held.
func (c *Cluster) SlotInUse() int64 { c.t.Helper(); return c.SlotOf("*") }

// SlotOf returns the slot of the only held lock whose keys match a pattern.
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

// Migrate begins to move a slot. Its keys stay where they are.
func (c *Cluster) Migrate(slot int64) *Move {
	c.t.Helper()
	m := &Move{Cluster: c, slot: slot}
	for _, part := range c.Nodes[0].ClusterSlots(c.t.Context()).Val() {
		if int64(part.Start) <= slot && slot <= int64(part.End) {
			m.from = slices.IndexFunc(c.ids, func(id string) bool { return id == part.Nodes[0].ID })
		}
	}
	m.to = (m.from + 1) % len(c.Nodes)
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", c.ids[m.from])
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", c.ids[m.to])
	return m
}

// Carry moves keys, up to most, and returns how many are left.
func (m *Move) Carry(most int) int {
	m.t.Helper()
	to := m.Nodes[m.to].Options()
	host, port, _ := net.SplitHostPort(to.Addr)
	keys := m.Nodes[m.from].ClusterGetKeysInSlot(m.t.Context(), int(m.slot), 100).Val()
	for _, key := range keys[:min(most, len(keys))] {
		m.do(m.from, "MIGRATE", host, port, key, 0, 5000, "AUTH", to.Password)
	}
	return max(0, len(keys)-most)
}

// Finish moves the rest and tells all nodes which of them has the slot.
func (m *Move) Finish() {
	m.t.Helper()
	for m.Carry(100) > 0 { // new ones may have come
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
