package servers

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
)

func TestParseTopology(t *testing.T) {
	for text, want := range map[string]struct {
		parsed  Topology
		usual   string
		servers int
	}{
		"":           {Topology{}, "single", 1},
		"single":     {Topology{Kind: Single}, "single", 1},
		"nodes":      {Topology{Kind: Independent}, "nodes:5", 5},
		"nodes:2":    {Topology{Independent, 2}, "nodes:2", 2},
		"replicas":   {Topology{Kind: Replicated}, "replicas:2", 3},
		"replicas:1": {Topology{Replicated, 1}, "replicas:1", 2},
		"cluster":    {Topology{Kind: Clustered}, "cluster:3", 3},
		"cluster:4":  {Topology{Clustered, 4}, "cluster:4", 4},
	} {
		got, err := ParseTopology(text)
		if err != nil || got != want.parsed || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if usual := got.usual(); usual.String() != want.usual || usual.Servers() != want.servers {
			t.Errorf("%q usually is %v of %d servers, want %+v", text, usual, usual.Servers(), want)
		}
	}
	for _, text := range []string{
		"ring", "single:1", "nodes:", "nodes:0", "nodes:17", "nodes:x", "replicas:-1", "cluster:2", "cluster:3:1",
		"Cluster:3", " ",
	} {
		refuses(t, Options{Address: "process", Topology: text}, ErrConfig)
	}
}

func TestIndependentNodes(t *testing.T) {
	s := open(t, Options{Address: "process", Topology: "nodes:5"})
	ctx := t.Context()
	if s.topology.Independent() != 5 || s.Primaries() != 5 || s.Describe().Topology != "nodes:5" {
		t.Errorf("%d independent nodes of %+v", s.topology.Independent(), s.Describe())
	}
	assertPasswordRequired(t, s)
	nodes := clientsOf(t, s, 2)
	if len(nodes) != 5 {
		t.Fatalf("clients of %d nodes", len(nodes))
	}
	for i, n := range nodes {
		must(t, n.Client.Set(ctx, "lockbench:{r1:0}", i, 0).Err())
	}
	left, err := s.Leftovers(ctx, "{r1:", "nobody")
	if err != nil || !slices.Equal(left.Keys, []string{"lockbench:{r1:0}"}) {
		t.Errorf("leftovers %v, %v; want the key that all have, once", left.Keys, err)
	}
	before := readOf(t, s)
	if len(before.Nodes) != 5 || before.Commands["set"] != 5 {
		t.Errorf("reading %+v", before)
	}

	own := s.Owned()
	must(t, own[1].Kill(ctx), own[3].Kill(ctx))
	if err := s.Ping(ctx); err != nil {
		t.Errorf("three of five live: %v", err)
	}
	during := readOf(t, s)
	if d := during.Since(before, 0); *d.BytesIn <= 0 || *d.Nodes[1].BytesIn != 0 || during.Clients >= before.Clients {
		t.Errorf("with two down: %+v", d)
	}
	if more := clientsOf(t, s, 2); len(more) != 5 {
		t.Errorf("with two down there are clients of %d nodes", len(more))
	}
	must(t, own[1].Restart(ctx))
	if d := readOf(t, s).Since(during, 0); *d.Nodes[1].BytesIn <= 0 || d.Commands["set"] != 0 {
		t.Errorf("a node that began to count anew: %+v", d.Nodes[1])
	}
	if err := s.Remove(ctx, left.Keys); err != nil {
		t.Errorf("remove with one down: %v", err)
	}
	must(t, own[0].Pause(ctx), own[4].Pause(ctx))
	if err := s.Ping(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("two of five answer: %v, want ErrUnreachable", err)
	}
	must(t, own[0].Resume(ctx), own[4].Resume(ctx))
}

func TestAddressesOfIndependentNodes(t *testing.T) {
	servers := []*Own{process(t), process(t, "--requirepass", "s3cr3t"), process(t)}
	one, two, three := servers[0].Addr(), servers[1].Addr(), servers[2].Addr()
	s := open(t, Options{Address: one + ", redis://:s3cr3t@" + two + "," + three, RunID: "user"})
	if about := s.Describe(); about.Topology != "nodes:3" || !slices.Equal(about.Nodes, []string{one, two, three}) {
		t.Errorf("description %+v", about)
	}
	if s.Owned() != nil {
		t.Error("a user's nodes count as ours")
	}
	for _, address := range []string{
		one + ",", one + "," + one, "localhost" + strings.TrimPrefix(one, "127.0.0.1") + "," + one, "process," + one,
	} {
		refuses(t, Options{Address: address}, ErrConfig)
	}
	must(t, servers[2].Kill(t.Context()))
	if said := refuses(t, Options{Address: one + "," + three}, ErrUnreachable); !strings.Contains(said, three) {
		t.Errorf("one that was named is not there: %s", said)
	}
}

// TestPortTaken makes lockbench first pick a port that another Redis uses. The start must succeed at another port.
func TestPortTaken(t *testing.T) {
	taken := process(t)
	picks := 0
	of := Options{}.fleet(single{})
	of.Ports = func() ([]int, error) {
		if picks++; picks == 1 {
			port, err := strconv.Atoi(strings.TrimPrefix(taken.Addr(), "127.0.0.1:"))
			return []int{port}, err
		}
		return launch.FreePorts(1)()
	}
	if p := begin(t, of); picks < 2 || p.Addr() == taken.Addr() {
		t.Errorf("after %d picks it is at %s", picks, p.Addr())
	}
}
