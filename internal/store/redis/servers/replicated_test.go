package servers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies/goredis"
)

func TestReplicas(t *testing.T) {
	s := open(t, Options{Address: "process", Topology: "replicas:2"})
	if about := s.Describe(); about.Topology != "replicas:2" || len(about.Nodes) != 3 || about.Mode != "standalone" {
		t.Errorf("description %+v", about)
	}
	if s.Primaries() != 1 || s.topology.Independent() != 1 || len(s.Owned()) != 3 {
		t.Errorf("%d primaries, %d independent nodes, %d owned",
			s.Primaries(), s.topology.Independent(), len(s.Owned()))
	}
	t.Run("readings", func(t *testing.T) { replicaReadings(t, s) })
	t.Run("addresses", func(t *testing.T) { replicaAddresses(t, s) })
	t.Run("promotion", func(t *testing.T) { promotion(t, s) })
	t.Run("old primary", func(t *testing.T) { oldPrimary(t, s) })
	t.Run("lag", func(t *testing.T) { replicaLags(t, s) })
	assertPasswordRequired(t, s) // also on restarted nodes
}

func replicaReadings(t *testing.T, s *Server) {
	ctx := t.Context()
	nodes := clientsOf(t, s, 2)
	if len(nodes) != 1 {
		t.Fatalf("%d nodes; want the primary alone", len(nodes))
	}
	client := nodes[0].Client
	before := readOf(t, s)
	const loops = 500 // so many that a second of acknowledgements is negligible
	for range loops {
		must(t, client.Set(ctx, "lockbench:{r1:0}", "value", 0).Err())
	}
	heard(t, client.(*redis.Client), 2)
	d := readOf(t, s).Since(before, loops)
	// Each of the three nodes executes every SET. The replication stream must not count as foreign traffic; only the
	// replicas' acknowledgements do.
	if d.Commands["set"] != 3*loops || *d.OtherTraffic > 5 {
		t.Errorf("commands %v, %.1f %% foreign", d.Commands, *d.OtherTraffic)
	}
	for i, node := range d.Nodes {
		want := replica
		if i == 0 {
			want = primary
		}
		if node.Role != want || node.Address != s.nodes[i].addr() || node.Commands["set"] != loops {
			t.Errorf("node %d: %+v", i, node)
		}
	}
	left, err := s.Leftovers(ctx, "lockbench:{r1:", clientsName)
	if err != nil || len(left.Keys) != 1 || len(left.Connections) != 2 {
		t.Errorf("leftovers %+v, %v", left, err)
	}
	must(t, s.Remove(ctx, left.Keys))
}

// heard fails the test unless this number of replicas have confirmed the last write of the client or connection `of`.
func heard(t *testing.T, of interface {
	Wait(ctx context.Context, replicas int, timeout time.Duration) *redis.IntCmd
}, replicas int,
) {
	t.Helper()
	if n := of.Wait(t.Context(), replicas, 20*time.Second).Val(); n != int64(replicas) {
		t.Fatalf("%d replicas have it, want %d", n, replicas)
	}
}

func replicaAddresses(t *testing.T, s *Server) {
	at := urls(s)
	users := open(t, Options{Address: at[2] + "," + at[0], Topology: "replicas", RunID: "user"})
	if about := users.Describe(); about.Topology != "replicas:1" || about.Address != s.nodes[0].addr() ||
		users.Owned() != nil {
		t.Errorf("description %+v", about)
	}
	for _, address := range []string{at[1], at[1] + "," + at[2], process(t).Addr() + "," + at[1]} {
		refuses(t, Options{Address: address}, ErrConfig)
	}
}

// promotion kills the primary and promotes a replica. All clients must then write to the new primary.
func promotion(t *testing.T, s *Server) {
	ctx := t.Context()
	node := clientsOf(t, s, 2)[0]
	own, err := goredis.Dial(node, func(o *redis.Options) { o.PoolSize = 1 })
	must(t, err)
	defer own.Close()
	must(t, node.Client.Set(ctx, "k", "before", 0).Err(), own.Set(ctx, "k", "before", 0).Err())
	heard(t, node.Client.(*redis.Client), 2)
	before := readOf(t, s)
	must(t, s.Owned()[0].Kill(ctx))
	if err := s.Ping(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without a primary: %v, want ErrUnreachable", err)
	}
	must(t, s.promote(ctx, s.nodes[2]))
	if s.primaries()[0] != s.nodes[2] {
		t.Error("the primary is another")
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("the old primary is only a dead replica now: %v", err)
	}
	for name, c := range map[string]redis.UniversalClient{"the node's client": node.Client, "one of its options": own} {
		poll.Until(t, "a write is confirmed", func() bool { return c.Set(ctx, "k", name, 0).Err() == nil })
	}
	if got := s.nodes[2].observer.Get(ctx, "k").Val(); got == "before" || got == "" {
		t.Errorf("the new primary holds %q", got)
	}
	must(t, s.Settle(ctx)) // the remaining replica follows the new primary, and Settle does not wait for the dead one
	heard(t, node.Client.(*redis.Client), 1)
	d := readOf(t, s).Since(before, 1)
	if *d.BytesIn <= 0 || d.Nodes[0].Role != replica || *d.Nodes[0].Calls != 0 || d.Nodes[2].Role != primary {
		t.Errorf("over a failover: %+v", d.Nodes)
	}
}

// oldPrimary restarts the killed primary, which must become a replica. Then it promotes a node while the primary is
// paused, so that there are two primaries. The paused one must rejoin as a replica.
func oldPrimary(t *testing.T, s *Server) {
	ctx := t.Context()
	role := func(i int, want, when string) {
		t.Helper()
		fields, err := readInfo(ctx, s.nodes[i].observer, "replication")
		if err != nil || fields["role"] != want {
			t.Errorf("%s: node %d is a %s, want a %s (%v)", when, i, fields["role"], want, err)
		}
	}
	must(t, s.Owned()[0].Restart(ctx), s.Settle(ctx))
	role(0, "slave", "the old primary came back")
	paused := s.Owned()[2]
	must(t, paused.Pause(ctx), s.promote(ctx, s.nodes[1]), paused.Resume(ctx))
	role(1, "master", "after a partition")
	role(2, "master", "after a partition")
	must(t, s.rejoin(ctx, s.nodes[2]), s.Settle(ctx))
	role(2, "slave", "after REPLICAOF")
}

// replicaLags detaches a replica and promotes it. It must have only the data from before it was detached, and must be
// able to rejoin.
func replicaLags(t *testing.T, s *Server) {
	ctx := t.Context()
	holds := func(node int, want string) {
		t.Helper()
		if got := s.nodes[node].observer.Get(ctx, "k").Val(); got != want {
			t.Errorf("node %d holds %q, want %q", node, got, want)
		}
	}
	write := func(value string, replicas int) {
		t.Helper()
		conn := s.primary.Load().observer.(*redis.Client).Conn()
		defer conn.Close()
		must(t, conn.Set(ctx, "k", value, 0).Err())
		heard(t, conn, replicas)
	}
	write("early", 2)
	must(t, s.nodes[2].detach(ctx))
	if err := s.Settle(ctx); err != nil {
		t.Errorf("with a replica detached: %v", err)
	}
	write("late", 1)
	for node, want := range []string{"late", "late", "early"} {
		holds(node, want)
	}
	must(t, s.primary.Load().own.Kill(ctx), s.promote(ctx, s.nodes[2]))
	holds(2, "early")
	must(t, s.Settle(ctx)) // the other replica discards what its new primary never had
	holds(0, "early")

	must(t, s.nodes[0].detach(ctx), s.rejoin(ctx, s.nodes[0]), s.Settle(ctx))
	write("again", 1)
	holds(0, "again")
	must(t, s.Owned()[1].Restart(ctx), s.Settle(ctx))
}

// The replica is dead before the first reading. The reading must contain only the primary.
func TestReplicaDown(t *testing.T) {
	s := open(t, Options{Address: "process", Topology: "replicas:1"})
	must(t, s.Owned()[1].Kill(t.Context()), s.Settle(t.Context()))
	if r := readOf(t, s); len(r.Nodes) != 1 {
		t.Errorf("reading of %d nodes; the replica never answered", len(r.Nodes))
	}
}
