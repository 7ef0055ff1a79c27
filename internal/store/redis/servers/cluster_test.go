package servers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
)

// A cluster takes two seconds to serve, so all that is asked of one is asked of
// the same.
func TestCluster(t *testing.T) {
	s := open(t, Options{Address: "process", Topology: "cluster:3", RunID: "r1"})
	about := s.Describe()
	if about.Topology != "cluster:3" || about.Mode != "cluster" || len(about.Nodes) != 3 {
		t.Errorf("description %+v", about)
	}
	if s.Primaries() != 3 || s.Independent() != 1 {
		t.Errorf("%d primaries, %d independent nodes", s.Primaries(), s.Independent())
	}
	t.Run("keys", func(t *testing.T) { clusterKeys(t, s) })
	t.Run("channels", func(t *testing.T) { clusterChannels(t, s) })
	t.Run("bus", func(t *testing.T) { clusterBus(t, s) })
	t.Run("addresses", func(t *testing.T) { clusterAddresses(t, s) })
	t.Run("sweep", func(t *testing.T) { clusterSweep(t, s) })
	t.Run("restart", func(t *testing.T) { clusterRestart(t, s) })
	refusesStrangers(t, s) // the restarted one, too
}

func clusterKeys(t *testing.T, s *Server) {
	ctx := t.Context()
	const mark, name = "lockbench:{r1:", "lockbench:r1:clients"
	nodes, err := s.Clients(ctx, name, 4, nil)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes, %v; want one for the whole cluster", len(nodes), err)
	}
	client := nodes[0].Client
	defer client.Close()
	if stats := client.PoolStats(); stats.TotalConns != 3*4 {
		t.Errorf("%d connections, want 4 to each of 3 nodes", stats.TotalConns)
	}
	before, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const keys = 90
	for i := range keys {
		if err := client.Set(ctx, fmt.Sprintf("%s%d}", mark, i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	d := after.Since(before, keys)
	// The two readings differ by one INFO a node.
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
	left, err := s.Leftovers(ctx, mark, name)
	if err != nil || len(left.Keys) != keys || len(left.Connections) != 3*4 {
		t.Errorf("%d keys, %d connections left, %v", len(left.Keys), len(left.Connections), err)
	}
	if err := s.Remove(ctx, left.Keys); err != nil {
		t.Fatal(err)
	}
	if n := client.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if limits, err := s.Limits(ctx); err != nil || limits.MaxClients == 0 || limits.Connected < 4 {
		t.Errorf("limits = %+v, %v", limits, err)
	}
}

// A message goes to all nodes and reaches the subscribers of the whole cluster, one
// to a shard those of its shard only.
func clusterChannels(t *testing.T, s *Server) {
	ctx := t.Context()
	nodes, err := s.Clients(ctx, "lockbench:r1:clients", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := nodes[0].Client
	defer client.Close()
	plain, sharded := client.Subscribe(ctx, "mark:plain"), client.SSubscribe(ctx, "mark:shard")
	defer plain.Close()
	defer sharded.Close()
	if _, err := plain.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := sharded.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.Subscriptions(ctx); n == nil || *n != 2 {
		t.Errorf("subscriptions = %v, want 2", n)
	}
	left, err := s.Leftovers(ctx, "mark", "nobody")
	if want := []string{"mark:plain", "mark:shard"}; err != nil || !slices.Equal(left.Channels, want) {
		t.Errorf("channels %v, %v; want %v", left.Channels, err, want)
	}
	before, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Publish(ctx, "mark:plain", "p").Err(); err != nil {
		t.Fatal(err)
	}
	between, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.SPublish(ctx, "mark:shard", "s").Err(); err != nil {
		t.Fatal(err)
	}
	after, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what     string
		from, to results.Reading
		want     int64
	}{{"PUBLISH", before, between, 2}, {"SPUBLISH", between, after, 0}} {
		if n := test.to.Since(test.from, 0).BusPublished; n == nil || *n != test.want {
			t.Errorf("%s made %v messages between the nodes, want %d", test.what, n, test.want)
		}
	}
	if m, err := plain.ReceiveMessage(ctx); err != nil || m.Payload != "p" {
		t.Errorf("message %v, %v", m, err)
	}
	if m, err := sharded.ReceiveMessage(ctx); err != nil || m.Payload != "s" {
		t.Errorf("sharded message %v, %v", m, err)
	}
}

// clusterBus: what is published to everybody is received twice as bytes too, in time.
func clusterBus(t *testing.T, s *Server) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a socket has received")
	}
	ctx := t.Context()
	nodes, err := s.Clients(ctx, "lockbench:r3:clients", 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := nodes[0].Client
	defer client.Close()
	const size = 1 << 20
	before, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if before.BusReceived == nil {
		t.Fatal("the nodes' sockets are not to be seen")
	}
	if err := client.Publish(ctx, "plain", strings.Repeat("p", size)).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		after, err := s.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		d := after.Since(before, 0)
		reached := 0
		for _, node := range d.Nodes {
			if *node.BusReceived >= size {
				reached++
			}
		}
		if reached == 2 && *d.BusReceived >= 2*size && *d.BusReceived < 3*size {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a message of 1 MiB: %d bytes received, it reached %d other nodes of 2", *d.BusReceived, reached)
		}
	}
}

// One address is enough to know a cluster by; several must be of the same.
func clusterAddresses(t *testing.T, s *Server) {
	at := urls(s)
	for _, address := range []string{at[1], at[2] + ", " + at[0]} {
		users := open(t, Options{Address: address, RunID: "user"})
		if users.Topology() != s.Topology() || users.Owned() != nil || len(users.Describe().Nodes) != 3 {
			t.Errorf("at %s: %+v", address, users.Describe())
		}
	}
	other := process(t)
	for address, topology := range map[string]string{
		at[0]:                         "single",
		at[1]:                         "cluster:4",
		at[0] + "," + other.Addr():    "",
		at[0] + "/1":                  "",
		at[0] + "," + at[0]:           "",
		other.Addr():                  "cluster:3",
		at[0] + "," + emptyCluster(t): "",
	} {
		s, err := Open(t.Context(), Options{Address: address, Topology: topology, RunID: "user"})
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%s as %q: %v, want ErrConfig", address, topology, err)
		}
		if err == nil {
			t.Error(s.Close(t.Context()))
		}
	}
}

// emptyCluster is a node that belongs to no cluster yet.
func emptyCluster(t *testing.T) string {
	t.Helper()
	p, err := Options{RunID: "test"}.startProcess(t.Context(), freeClusterPort, nil, Topology{Kind: Clustered}.row().settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p.Addr()
}

func clusterSweep(t *testing.T, s *Server) {
	ctx := t.Context()
	for i := range 30 {
		if err := s.cluster.Set(ctx, fmt.Sprintf("lockbench:{deadbeef:1:%d}", i), "", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	swept, err := Sweep(ctx, Options{Address: urls(s)[0], RunID: "c1ea0000"})
	if err != nil || swept.Found != 30 || !slices.Equal(swept.Runs, []string{victimID}) {
		t.Errorf("swept %d keys of %v, %v", swept.Found, swept.Runs, err)
	}
}

// A node that comes back has its slots, with or without data.
func clusterRestart(t *testing.T, s *Server) {
	ctx := t.Context()
	own := s.Owned()[1]
	slots := func() string {
		text, err := s.nodes[1].observer.ClusterNodes(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "myself") {
				fields := strings.Fields(line)
				return fields[len(fields)-1]
			}
		}
		return ""
	}
	before := slots()
	if err := own.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a third of the slots is missing: %v, want ErrUnreachable", err)
	}
	if err := own.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if after := slots(); after != before || !strings.Contains(after, "-") {
		t.Errorf("slots were %s and are %s", before, after)
	}
}
