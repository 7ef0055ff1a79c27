package servers

import (
	"context"
	"testing"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// TestUserServerIsUnchanged opens and closes a user's server. The server must still run afterwards, without
// connections of lockbench.
func TestUserServerIsUnchanged(t *testing.T) {
	p := process(t)
	s := open(t, Options{Address: "redis://" + p.Addr()})
	if s.Owned() != nil {
		t.Error("a user's server counts as ours")
	}
	if about := s.Describe(); about.Source != "address" || about.Address != p.Addr() || about.Network != "loopback" {
		t.Errorf("description %+v", about)
	}
	must(t, s.Close(context.Background()))
	if !up(t, p.Addr()) {
		t.Fatal("it was stopped")
	}
	again := open(t, Options{Address: p.Addr(), RunID: "again"})
	poll.Until(t, "only the observer is connected", func() bool {
		r, err := again.Read(t.Context())
		return err == nil && r.Clients == 1
	})
	s.nodes = nil // closed above
}

// Unfit must reject a strategy if the server is too old for it, and must name the missing feature.
func TestTooOld(t *testing.T) {
	needy := strategies.Info{Nodes: 1, Since: strategies.Since{Redis: "7.0", For: "sharded channels"}}
	for version, want := range map[string]string{
		"6.2.14": "it needs Redis 7.0 (sharded channels), this is 6.2.14", "7.0.0": "", "8.0.2": "", "10.1": "", "": "",
	} {
		s := &Server{topology: Topology{Kind: Single}, nodes: []*node{{}}}
		s.nodes[0].software.Software = goredis.SoftwareOf(replies.ParseInfo("redis_version:"+version), nil)
		if got := s.Unfit(needy); got != want {
			t.Errorf("on %q it is unfit by %q, want %q", version, got, want)
		}
		if got := s.Unfit(strategies.Info{Nodes: 1}); got != "" {
			t.Errorf("a strategy without needs does not fit %q: %s", version, got)
		}
	}
}
