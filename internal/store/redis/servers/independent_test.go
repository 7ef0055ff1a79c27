package servers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/strategies/goredis"
)

func TestIndependentNodes(t *testing.T) {
	s := open(t, Options{Address: "process", Topology: "nodes:5"})
	ctx := t.Context()
	if s.Independent() != 5 || s.Primaries() != 5 || s.Describe().Topology != "nodes:5" {
		t.Errorf("%d independent nodes of %+v", s.Independent(), s.Describe())
	}
	refusesStrangers(t, s)
	connect := func() []goredis.Node {
		nodes, err := s.Clients(ctx, "lockbench:test:clients", 2, nil)
		if err != nil || len(nodes) != 5 {
			t.Fatalf("%d nodes, %v", len(nodes), err)
		}
		return nodes
	}
	nodes := connect()
	defer closeClients(nodes)
	for i, n := range nodes {
		if err := n.Client.Set(ctx, "lockbench:{r1:0}", i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	left, err := s.Leftovers(ctx, "{r1:", "nobody")
	if err != nil || !slices.Equal(left.Keys, []string{"lockbench:{r1:0}"}) {
		t.Errorf("leftovers %v, %v; want the key that all have, once", left.Keys, err)
	}
	before, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(before.Nodes) != 5 || before.Commands["set"] != 5 {
		t.Errorf("reading %+v", before)
	}

	own := s.Owned()
	for _, i := range []int{1, 3} {
		if err := own[i].Kill(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("three of five live: %v", err)
	}
	during, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := during.Since(before, 0); *d.BytesIn <= 0 || *d.Nodes[1].BytesIn != 0 || during.Clients >= before.Clients {
		t.Errorf("with two down: %+v", d)
	}
	closeClients(connect()) // to those that are left
	if err := own[1].Restart(ctx); err != nil {
		t.Fatal(err)
	}
	after, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := after.Since(during, 0); *d.Nodes[1].BytesIn <= 0 || d.Commands["set"] != 0 {
		t.Errorf("a node that began to count anew: %+v", d.Nodes[1])
	}
	if err := s.Remove(ctx, left.Keys); err != nil {
		t.Errorf("remove with one down: %v", err)
	}
	for _, i := range []int{0, 4} {
		if err := own[i].Pause(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ping(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("two of five answer: %v, want ErrUnreachable", err)
	}
	for _, i := range []int{0, 4} {
		if err := own[i].Resume(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func closeClients(nodes []goredis.Node) {
	for _, n := range nodes {
		_ = n.Client.Close()
	}
}

func TestAddressesOfIndependentNodes(t *testing.T) {
	one, two, three := process(t), process(t, "--requirepass", "s3cr3t"), process(t)
	s := open(t, Options{Address: one.Addr() + ", redis://:s3cr3t@" + two.Addr() + "," + three.Addr(), RunID: "user"})
	if about := s.Describe(); about.Topology != "nodes:3" || !slices.Equal(about.Nodes, []string{one.Addr(), two.Addr(), three.Addr()}) {
		t.Errorf("description %+v", about)
	}
	if s.Owned() != nil {
		t.Error("a user's nodes count as ours")
	}
	for _, address := range []string{one.Addr() + ",", one.Addr() + "," + one.Addr(), "localhost:" + port(one) + "," + one.Addr(), "process," + one.Addr()} {
		if s, err := Open(t.Context(), Options{Address: address, RunID: "user"}); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, %v; want ErrConfig", address, s, err)
		}
	}
	if err := three.Kill(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{Address: one.Addr() + "," + three.Addr(), RunID: "user"})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), three.Addr()) {
		t.Errorf("one that was named is not there: %v", err)
	}
}

func port(p *Process) string { return p.Addr()[strings.LastIndex(p.Addr(), ":")+1:] }

// A port that somebody takes between our choice and Redis's use of it is given up
// for another.
func TestPortTaken(t *testing.T) {
	taken := process(t)
	picks := 0
	p, err := Options{RunID: "test"}.startProcess(t.Context(), func() (int, error) {
		picks++
		if picks == 1 {
			return taken.Port(), nil
		}
		return launch.FreePort()
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if picks < 2 || p.Addr() == taken.Addr() {
		t.Errorf("after %d picks it is at %s", picks, p.Addr())
	}
}
