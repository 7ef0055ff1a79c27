package servers

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// All subtests share one cluster, because a new cluster needs two seconds until it serves all slots.
func TestCluster(t *testing.T) {
	s := open(t, Options{Address: "process", Topology: "cluster:3", RunID: "r1"})
	about := s.Describe()
	if about.Topology != "cluster:3" || about.Mode != "cluster" || len(about.Nodes) != 3 {
		t.Errorf("description %+v", about)
	}
	if s.Primaries() != 3 || s.topology.Independent() != 1 {
		t.Errorf("%d primaries, %d independent nodes", s.Primaries(), s.topology.Independent())
	}
	t.Run("keys", func(t *testing.T) { clusterKeys(t, s) })
	t.Run("channels", func(t *testing.T) { clusterChannels(t, s) })
	t.Run("bus", func(t *testing.T) { clusterBus(t, s) })
	t.Run("addresses", func(t *testing.T) { clusterAddresses(t, s) })
	t.Run("sweep", func(t *testing.T) { clusterSweep(t, s) })
	t.Run("restart", func(t *testing.T) { clusterRestart(t, s) })
	assertPasswordRequired(t, s) // also on the restarted node
}

func clusterKeys(t *testing.T, s *Server) {
	ctx := t.Context()
	nodes := clientsOf(t, s, 4)
	if len(nodes) != 1 {
		t.Fatalf("%d nodes, want one for the whole cluster", len(nodes))
	}
	client := nodes[0].Client
	if stats := client.PoolStats(); stats.TotalConns != 3*4 {
		t.Errorf("%d connections, want 4 to each of 3 nodes", stats.TotalConns)
	}
	const mark, keys = "lockbench:{r1:", 90
	before := readOf(t, s)
	for i := range keys {
		must(t, client.Set(ctx, fmt.Sprintf("%s%d}", mark, i), "v", 0).Err())
	}
	d := readOf(t, s).Since(before, keys)
	// A reading sends INFO to each of the three nodes, which adds three round trips.
	if d.Commands["set"] != keys || *d.RoundTrips != keys+3 || *d.OtherTraffic != 0 {
		t.Errorf("commands %v in %d round trips, %.1f %% foreign", d.Commands, *d.RoundTrips, *d.OtherTraffic)
	}
	var sets, in int64
	for _, node := range d.Nodes {
		if node.Commands["set"] == 0 || node.Role != "primary" {
			t.Errorf("no key at %+v", node)
		}
		sets += node.Commands["set"]
		in += *node.BytesIn
	}
	if len(d.Nodes) != 3 || sets != keys || in != *d.BytesIn {
		t.Errorf("%d nodes, %d sets, %d bytes in of %d", len(d.Nodes), sets, in, *d.BytesIn)
	}
	left, err := s.Leftovers(ctx, mark, clientsName)
	if err != nil || len(left.Keys) != keys || len(left.Connections) != 3*4 {
		t.Errorf("%d keys, %d connections left, %v", len(left.Keys), len(left.Connections), err)
	}
	must(t, s.Remove(ctx, left.Keys))
	if n := client.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if limits, err := s.Limits(ctx); err != nil || limits.MaxClients == 0 || limits.Connected < 4 {
		t.Errorf("limits = %+v, %v", limits, err)
	}
}

// The node that receives a PUBLISH forwards the message to both other nodes. A message of SPUBLISH stays within its
// shard, so no node forwards it.
func clusterChannels(t *testing.T, s *Server) {
	ctx := t.Context()
	client := clientsOf(t, s, 1)[0].Client
	plain, sharded := client.Subscribe(ctx, "mark:plain"), client.SSubscribe(ctx, "mark:shard")
	defer plain.Close()
	defer sharded.Close()
	_, one := plain.Receive(ctx)
	_, two := sharded.Receive(ctx)
	must(t, one, two)
	if n := s.Subscriptions(ctx); n == nil || *n != 2 {
		t.Errorf("subscriptions = %v, want 2", n)
	}
	left, err := s.Leftovers(ctx, "mark", "nobody")
	if want := []string{"mark:plain", "mark:shard"}; err != nil || !slices.Equal(left.Channels, want) {
		t.Errorf("channels %v, %v; want %v", left.Channels, err, want)
	}
	for what, test := range map[string]struct {
		publish func() error
		between int64 // messages between the nodes
	}{
		"PUBLISH":  {func() error { return client.Publish(ctx, "mark:plain", "p").Err() }, 2},
		"SPUBLISH": {func() error { return client.SPublish(ctx, "mark:shard", "s").Err() }, 0},
	} {
		before := readOf(t, s)
		must(t, test.publish())
		if n := readOf(t, s).Since(before, 0).BusPublished; n == nil || *n != test.between {
			t.Errorf("%s made %v messages between the nodes, want %d", what, n, test.between)
		}
	}
	if m, err := plain.ReceiveMessage(ctx); err != nil || m.Payload != "p" {
		t.Errorf("message %v, %v", m, err)
	}
	if m, err := sharded.ReceiveMessage(ctx); err != nil || m.Payload != "s" {
		t.Errorf("sharded message %v, %v", m, err)
	}
}

// A published message of 1 MB goes over the cluster bus to both other nodes. A reading must soon count these bytes.
func clusterBus(t *testing.T, s *Server) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports the bytes that a socket has received")
	}
	client := clientsOf(t, s, 4)[0].Client
	const size = 1 << 20
	before := readOf(t, s)
	if before.BusReceived == nil {
		t.Fatal("the nodes' sockets are not to be seen")
	}
	must(t, client.Publish(t.Context(), "plain", strings.Repeat("p", size)).Err())
	poll.Until(t, "the message has reached both other nodes", func() bool {
		d := readOf(t, s).Since(before, 0)
		reached := 0
		for _, node := range d.Nodes {
			if *node.BusReceived >= size {
				reached++
			}
		}
		return reached == 2 && *d.BusReceived >= 2*size && *d.BusReceived < 3*size
	})
}

// Open must find all nodes of a cluster from the address of a single node.
func clusterAddresses(t *testing.T, s *Server) {
	at := urls(s)
	for _, address := range []string{at[1], at[2] + ", " + at[0]} {
		users := open(t, Options{Address: address, RunID: "user"})
		if users.topology != s.topology || users.Owned() != nil || len(users.Describe().Nodes) != 3 {
			t.Errorf("at %s: %+v", address, users.Describe())
		}
	}
	other, empty := process(t).Addr(), begin(t, Options{}.fleet(clustered{})).Addr()
	for address, topology := range map[string]string{
		at[0]:               "single",
		at[1]:               "cluster:4",
		at[0] + "," + other: "",
		at[0] + "/1":        "",
		at[0] + "," + at[0]: "",
		other:               "cluster:3",
		empty:               "", // it belongs to no cluster yet
	} {
		refuses(t, Options{Address: address, Topology: topology}, ErrConfig)
	}
}

func clusterSweep(t *testing.T, s *Server) {
	ctx := t.Context()
	for i := range 30 {
		must(t, s.cluster.Set(ctx, fmt.Sprintf("lockbench:{deadbeef:1:%d}", i), "", 0).Err())
	}
	var swept store.Swept
	open(t, Options{Address: urls(s)[0], RunID: "c1ea0000"}).Sweep(ctx, &swept)
	if swept.Found != 30 || !slices.Equal(swept.Runs, []string{victimID}) {
		t.Errorf("swept %d keys of %v", swept.Found, swept.Runs)
	}
}

// A node that restarts must still have its slots, with or without its data.
func clusterRestart(t *testing.T, s *Server) {
	ctx := t.Context()
	own := s.Owned()[1]
	slots := func() string {
		text, err := s.nodes[1].observer.ClusterNodes(ctx).Result()
		must(t, err)
		for line := range strings.Lines(text) {
			if strings.Contains(line, "myself") {
				fields := strings.Fields(line)
				return fields[len(fields)-1]
			}
		}
		return ""
	}
	before := slots()
	must(t, own.Kill(ctx))
	if err := s.Ping(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a third of the slots is missing: %v, want ErrUnreachable", err)
	}
	must(t, own.Restart(ctx), s.Settle(ctx))
	if after := slots(); after != before || !strings.Contains(after, "-") {
		t.Errorf("slots were %s and are %s", before, after)
	}
}
