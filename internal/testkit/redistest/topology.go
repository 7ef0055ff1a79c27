package redistest

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/realredis"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// Topology is a set of running Redis nodes that belong to one test. Methods such as Kill take the index of a node. The
// nodes of a cluster are in no particular order. In a replicated topology, the primary comes before its replicas.
type Topology struct {
	Server *servers.Server

	t testing.TB
}

// StartTopology starts redis-servers in a topology such as "nodes:5", "replicas:2" or "cluster:3", waits until it is
// complete, and stops them when the test ends. A cluster takes two seconds to start, so subtests should share it.
func StartTopology(t testing.TB, topology string) *Topology {
	t.Helper()
	realredis.Quiet()
	server, err := servers.Open(t.Context(), servers.Options{
		Address: redisserver.Quickest(), Topology: topology, RunID: "test",
	})
	if err != nil {
		t.Fatalf("this test needs Redis in the topology %s: %v", topology, realredis.Explain(err))
	}
	top := &Topology{Server: server, t: t}
	t.Cleanup(func() { top.do("stop", server.Close) })
	return top
}

// Nodes returns the servers in the form that strategies receive: one node for each independent server, one for a
// primary with its replicas, or one for a whole cluster. The clients are closed when the test ends.
func (top *Topology) Nodes(t testing.TB) []goredis.Node {
	t.Helper()
	const pool = 64
	nodes, err := top.Server.Clients(t.Context(), "lockbench:test:clients", pool, nil)
	if err != nil {
		t.Fatalf("connect to the test's Redis: %v", err)
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			_ = n.Client.Close() // the test may have closed it
		}
	})
	return nodes
}

// Clients returns one client for each node, for a test that examines the node. The clients are closed when the test
// ends.
func (top *Topology) Clients(t testing.TB) []*redis.Client {
	t.Helper()
	var clients []*redis.Client
	for url := range strings.SplitSeq(top.Server.Address(), ",") {
		options, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, realredis.Look(t, options))
	}
	return clients
}

// Password returns the password of all nodes.
func (top *Topology) Password(t testing.TB) string { return top.Clients(t)[0].Options().Password }

// Addrs returns the addresses of all nodes.
func (top *Topology) Addrs() []string {
	var addrs []string
	for _, own := range top.Server.Owned() {
		addrs = append(addrs, own.Addr())
	}
	return addrs
}

// Kill ends a node as a crash would.
func (top *Topology) Kill(i int) { top.t.Helper(); top.do("kill", top.own(i).Kill) }

// Pause stops a node with SIGSTOP. Its connections stay open.
func (top *Topology) Pause(i int) { top.t.Helper(); top.do("pause", top.own(i).Pause) }

// Resume continues a paused node.
func (top *Topology) Resume(i int) { top.t.Helper(); top.do("resume", top.own(i).Resume) }

func (top *Topology) own(i int) *redisserver.Own { return top.Server.Owned()[i] }

func (top *Topology) do(what string, do func(context.Context) error) {
	top.t.Helper()
	realredis.Bounded(top.t, what, do)
}

// ClusterOf returns the Cluster for a running cluster of three primaries.
func ClusterOf(t testing.TB, top *Topology) *Cluster {
	t.Helper()
	return realredis.ClusterOf(t, top.Server.Owned())
}
