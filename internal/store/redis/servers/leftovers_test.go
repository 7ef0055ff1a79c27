package servers

import (
	"fmt"
	"testing"
)

func TestLeftovers(t *testing.T) {
	p := process(t)
	s := open(t, Options{Address: p.Addr(), RunID: "r1"})
	ctx := t.Context()
	const mark, name = "lockbench:{r1:", "lockbench:r1:clients"
	nodes, err := s.Clients(ctx, name, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := nodes[0].Client
	defer client.Close()

	pipe := client.Pipeline()
	for i := range 2500 {
		pipe.Set(ctx, fmt.Sprintf("queue:lockbench:{r1:%d}:tail", i), "", 0)
	}
	pipe.Set(ctx, "lockbench:{r2:0}", "of another run", 0)
	pipe.Set(ctx, "somebody else's", "", 0)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	pubsub := client.Subscribe(ctx, "lockbench:{r1:0}:channel", "other")
	defer pubsub.Close()
	patterns := client.PSubscribe(ctx, "*")
	defer patterns.Close()
	sharded := client.SSubscribe(ctx, "shard")
	defer sharded.Close()
	for range 2 {
		if _, err := pubsub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := patterns.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := sharded.Receive(ctx); err != nil {
		t.Fatal(err)
	}

	if n := s.Subscriptions(ctx); n == nil || *n != 4 {
		t.Errorf("subscriptions = %v, want 2 channels, a pattern and a sharded one", n)
	}
	left, err := s.Leftovers(ctx, mark, name)
	if err != nil {
		t.Fatal(err)
	}
	// One pool connection and one of each subscription carry the name.
	if len(left.Keys) != 2500 || len(left.Channels) != 1 || len(left.Connections) != 4 {
		t.Errorf("%d keys, channels %v, connections %v", len(left.Keys), left.Channels, left.Connections)
	}
	if err := s.Remove(ctx, left.Keys); err != nil {
		t.Fatal(err)
	}
	if n := client.DBSize(ctx).Val(); n != 2 {
		t.Errorf("%d keys are left, want the two that are not ours", n)
	}
	if err := s.Remove(ctx, nil); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
}

// A mark is text, not a pattern.
func TestLeftoversOfOddMark(t *testing.T) {
	s := open(t, Options{Address: process(t).Addr()})
	client := s.nodes[0].observer
	for _, key := range []string{`a[b]*?\c`, "ab*?c", `a[b]x?\c`} {
		if err := client.Set(t.Context(), key, "", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	left, err := s.Leftovers(t.Context(), `[b]*?\`, "nobody")
	if err != nil || len(left.Keys) != 1 || left.Keys[0] != `a[b]*?\c` {
		t.Errorf("leftovers = %v, %v", left.Keys, err)
	}
}
