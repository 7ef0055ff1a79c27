package zookeeper

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
	lock "github.com/lockbench/lockbench/strategies/zookeeper"
	"github.com/lockbench/lockbench/workloads"
)

// fault is one of a workload's.
func fault(t *testing.T, text string) workloads.Fault {
	t.Helper()
	f, err := workloads.ParseFault(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// An ensemble survives the loss of its leader in the middle of a run: there is one holder at
// a time, tokens grow, and locks are had again before the leader is back.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{Topology: "zookeeper:3"})
	about := s.Describe()
	if about.Topology != "zookeeper:3" || len(about.Nodes) != 3 || about.Mode != "ensemble" || s.node.Standalone {
		t.Fatalf("it is %+v", about)
	}
	t.Run("tokens grow from leader to leader", func(t *testing.T) { tokens(t, s) })
	faults := []string{"kill:at=100ms,for=1s,data=keep"}
	if extent.Thorough() {
		faults = append(faults, "node-hang:at=100ms,for=1s,node=1")
	}
	for _, text := range faults {
		t.Run(text, func(t *testing.T) {
			run(t, s, func(w *workloads.Spec) {
				w.TTL, w.Work, w.Faults = workloads.Duration(4*time.Second), workloads.WorkCounter, []workloads.Fault{fault(t, text)}
			})
			if err := s.Settle(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("read", func(t *testing.T) {
		reading, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		roles := map[string]int{}
		for _, node := range reading.Nodes {
			roles[node.Role]++
		}
		if roles["leader"] != 1 || roles["follower"] != 2 || reading.CPU == nil || reading.Commands["write"] == 0 {
			t.Errorf("roles %v of %+v", roles, reading)
		}
	})
	t.Run("without a quorum", func(t *testing.T) { withoutQuorum(t, s) })
}

// tokens takes leases while one leader after the other is killed.
func tokens(t *testing.T, s *Server) {
	locker, err := lock.Open(gozk.Config{Nodes: []gozk.Node{s.node}, Prefix: "tokens:", TTL: 10 * time.Second}, lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	last := int64(0)
	rounds := 1
	if extent.Thorough() {
		rounds = 3
	}
	for round := range rounds {
		for range 5 {
			lease := acquire(t, locker)
			token := lease.(strategies.Fenced).FencingToken()
			if token <= last {
				t.Errorf("round %d: token %d came after %d", round, token, last)
			}
			last = token
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var leader launch.Started
		poll.Until(t, "there is a leader", func() bool {
			leader = s.leader(t.Context(), nil)
			return leader != nil
		})
		if err := leader.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease := acquire(t, locker)
		if token := lease.(strategies.Fenced).FencingToken(); token>>32 <= last>>32 {
			t.Errorf("round %d: token %#x came after %#x, of another leader", round, token, last)
		} else {
			last = token
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := leader.Again(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(t.Context(), []string{"tokens:key"}); err != nil {
		t.Error(err)
	}
}

func acquire(t *testing.T, locker *lock.Locker) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	lease, err := locker.Acquire(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// withoutQuorum ends two of the three: the third serves nobody.
func withoutQuorum(t *testing.T, s *Server) {
	for _, o := range s.own[:2] {
		if err := o.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	poll.Until(t, "the third notices", func() bool { return s.Ping(t.Context()) != nil })
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	_, err := opened(ctx, "lost", store.Options{Address: "zk://" + strings.Join(s.node.Servers, ",")})
	unreachable(t, err, "quorum")
	if ctx.Err() != nil {
		t.Error("it waited for as long as it might")
	}
	if _, err := s.Read(t.Context()); err == nil {
		t.Error("counters were read")
	}
	if err := launch.Each(t.Context(), s.own[:2], launch.Started.Again); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}
