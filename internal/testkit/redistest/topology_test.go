package redistest_test

import (
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

func TestTopologyOutlivesAMinority(t *testing.T) {
	top := redistest.StartTopology(t, "nodes:3")
	nodes := top.Nodes(t)
	if len(nodes) != 3 || len(top.Addrs()) != 3 {
		t.Fatalf("%d nodes at %v", len(nodes), top.Addrs())
	}
	for i, n := range nodes {
		if err := n.Client.Set(t.Context(), "k", i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	top.Save(1)
	top.Kill(0)
	top.RestartWithData(1)
	top.Restart(2)
	for i, want := range []string{"", "1", ""} {
		got, err := nodes[i].Client.Get(t.Context(), "k").Result()
		if got != want || i == 0 && err == nil {
			t.Errorf("node %d holds %q, %v; want %q", i, got, err, want)
		}
	}
	if err := top.Server.Ping(t.Context()); err != nil {
		t.Errorf("two of three nodes live: %v", err)
	}
	top.Pause(2)
	if err := top.Server.Ping(t.Context()); err == nil {
		t.Error("one of three nodes is no majority")
	}
	top.Resume(2)
}
