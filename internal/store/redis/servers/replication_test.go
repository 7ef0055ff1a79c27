package servers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
)

func TestReplicas(t *testing.T) {
	s := open(t, Options{Address: "process", Topology: "replicas:2"})
	if about := s.Describe(); about.Topology != "replicas:2" || len(about.Nodes) != 3 || about.Mode != "standalone" {
		t.Errorf("description %+v", about)
	}
	if s.Primaries() != 1 || s.Independent() != 1 || len(s.Owned()) != 3 {
		t.Errorf("%d primaries, %d independent nodes, %d owned", s.Primaries(), s.Independent(), len(s.Owned()))
	}
	t.Run("readings", func(t *testing.T) { replicaReadings(t, s) })
	t.Run("addresses", func(t *testing.T) { replicaAddresses(t, s) })
	t.Run("promotion", func(t *testing.T) { promotion(t, s) })
	t.Run("old primary", func(t *testing.T) { oldPrimary(t, s) })
	refusesStrangers(t, s) // restarted ones, too
}

func replicaReadings(t *testing.T, s *Server) {
	ctx := t.Context()
	nodes, err := s.Clients(ctx, "lockbench:test:clients", 2, nil)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes, %v; want the primary alone", len(nodes), err)
	}
	client := nodes[0].Client
	defer client.Close()
	before, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const loops = 500 // so that a second more or less of acknowledgements does not count
	for range loops {
		if err := client.Set(ctx, "lockbench:{r1:0}", "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := client.(*redis.Client).Wait(ctx, 2, 20*time.Second).Result(); err != nil || n != 2 {
		t.Fatalf("%d replicas have it, %v", n, err)
	}
	after, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	d := after.Since(before, loops)
	// Three nodes have executed it; what the primary passed on is not foreign, only
	// the replicas' acknowledgements look so.
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
	left, err := s.Leftovers(ctx, "lockbench:{r1:", "lockbench:test:clients")
	if err != nil || len(left.Keys) != 1 || len(left.Connections) != 2 {
		t.Errorf("leftovers %+v, %v", left, err)
	}
	if err := s.Remove(ctx, left.Keys); err != nil {
		t.Error(err)
	}
}

func replicaAddresses(t *testing.T, s *Server) {
	at := urls(s)
	users := open(t, Options{Address: at[2] + "," + at[0], Topology: "replicas", RunID: "user"})
	if about := users.Describe(); about.Topology != "replicas:1" || about.Address != s.nodes[0].addr() || users.Owned() != nil {
		t.Errorf("description %+v", about)
	}
	if err := users.Promote(t.Context(), 1); !errors.Is(err, ErrConfig) {
		t.Errorf("a user's replica was promoted: %v", err)
	}
	other := process(t)
	for _, address := range []string{at[1], at[1] + "," + at[2], other.Addr() + "," + at[1]} {
		if s, err := Open(t.Context(), Options{Address: address, RunID: "user"}); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, %v; want ErrConfig", address, s, err)
		}
	}
}

// promotion kills the primary and follows a client over to a replica.
func promotion(t *testing.T, s *Server) {
	ctx := t.Context()
	nodes, err := s.Clients(ctx, "lockbench:test:clients", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := nodes[0].Client
	defer client.Close()
	own, err := nodes[0].Dial(func(o *redis.Options) { o.PoolSize = 1 })
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, c := range []redis.UniversalClient{client, own} {
		if err := c.Set(ctx, "k", "before", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := client.(*redis.Client).Wait(ctx, 2, 20*time.Second).Val(); n != 2 {
		t.Fatalf("%d replicas have it", n)
	}
	before, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Owned()[0].Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without a primary: %v, want ErrUnreachable", err)
	}
	if err := s.Promote(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if s.Primary() != 2 {
		t.Errorf("the primary is %d", s.Primary())
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("the old primary is only a dead replica now: %v", err)
	}
	for name, c := range map[string]redis.UniversalClient{"the node's client": client, "a client of its options": own} {
		poll.Until(t, "a write is confirmed", func() bool { return c.Set(ctx, "k", name, 0).Err() == nil })
	}
	if got := s.nodes[2].observer.Get(ctx, "k").Val(); got == "before" || got == "" {
		t.Errorf("the new primary holds %q", got)
	}
	// The remaining replica follows the new primary.
	if err := s.Settle(ctx); err != nil {
		t.Error(err)
	}
	if n := client.(*redis.Client).Wait(ctx, 1, 20*time.Second).Val(); n != 1 {
		t.Errorf("%d replicas follow", n)
	}
	after, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	d := after.Since(before, 1)
	if *d.BytesIn <= 0 || d.Nodes[0].Role != replica || *d.Nodes[0].Calls != 0 || d.Nodes[2].Role != primary {
		t.Errorf("over a failover: %+v", d.Nodes)
	}
}

// oldPrimary brings the killed primary back, then pauses the new one through a
// promotion, so that there are two.
func oldPrimary(t *testing.T, s *Server) {
	ctx := t.Context()
	role := func(i int) string {
		fields, err := readInfo(ctx, s.nodes[i].observer, "replication")
		if err != nil {
			return err.Error()
		}
		return fields["role"]
	}
	if err := s.Owned()[0].Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if got := role(0); got != "slave" {
		t.Errorf("the old primary came back as %s", got)
	}
	paused := s.Owned()[2]
	if err := paused.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Promote(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := paused.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	if one, two := role(1), role(2); one != "master" || two != "master" {
		t.Errorf("after a partition: %s and %s, want two primaries", one, two)
	}
	if err := s.Follow(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if got := role(2); got != "slave" {
		t.Errorf("told to follow, it is %s", got)
	}
}

// A detached replica lags, is promoted with what it had, and comes back.
func TestReplicaLags(t *testing.T) {
	ctx := t.Context()
	s := open(t, Options{Address: "process", Topology: "replicas:2"})
	holds := func(node int, want string) {
		t.Helper()
		if got := s.nodes[node].observer.Get(ctx, "k").Val(); got != want {
			t.Errorf("node %d holds %q, want %q", node, got, want)
		}
	}
	write := func(value string, replicas int64) {
		t.Helper()
		conn := s.primary.Load().observer.(*redis.Client).Conn()
		defer conn.Close()
		if err := conn.Set(ctx, "k", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if n := conn.Wait(ctx, int(replicas), 20*time.Second).Val(); n != replicas {
			t.Errorf("%d replicas have heard of %q, want %d", n, value, replicas)
		}
	}
	write("early", 2)
	if err := s.Detach(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx); err != nil {
		t.Errorf("with a replica detached: %v", err)
	}
	write("late", 1)
	for node, want := range []string{"late", "late", "early"} {
		holds(node, want)
	}
	if err := s.Owned()[0].Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Promote(ctx, 2); err != nil {
		t.Fatal(err)
	}
	holds(2, "early")
	if err := s.Settle(ctx); err != nil { // the other replica forgets what the primary never knew
		t.Fatal(err)
	}
	holds(1, "early")

	if err := s.Detach(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Follow(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	write("again", 1)
	holds(1, "again")
	if err := s.Detach(ctx, 2); !errors.Is(err, ErrConfig) {
		t.Errorf("detach the primary: %v", err)
	}
}

// A replica that is down is neither waited for nor asked.
func TestReplicaDown(t *testing.T) {
	s := open(t, Options{Address: "process", Topology: "replicas:1"})
	if err := s.Owned()[1].Kill(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := s.Read(t.Context()); err != nil || len(r.Nodes) != 1 {
		t.Errorf("reading of %d nodes, %v; the replica never answered", len(r.Nodes), err)
	}
	if err := s.Promote(t.Context(), 7); !errors.Is(err, ErrConfig) {
		t.Errorf("promote the eighth of two: %v", err)
	}
}
