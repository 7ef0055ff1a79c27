package redlock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// replicated is a node of Redlock that can fail over. Clients always connect to the same address, as with a DNS name or
// a proxy. They reach the primary before a failover, and the replica after it.
type replicated struct {
	t                *testing.T
	primary, replica *redistest.Server
	heir             redis.UniversalClient // of the replica
	address          atomic.Pointer[string]
}

// follow makes replica a replica of primary, and waits until they are in sync.
func follow(t *testing.T, primary, replica *redistest.Server) {
	t.Helper()
	client := replica.Client(t)
	host, port, _ := net.SplitHostPort(primary.Addr)
	if err := client.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the replica follows", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
}

func startReplicated(t *testing.T) *replicated {
	t.Helper()
	primary := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	r := &replicated{t: t, primary: primary, replica: redistest.Start(t)}
	r.heir = r.replica.Client(t)
	r.address.Store(&r.primary.Addr)
	follow(t, r.primary, r.replica)
	return r
}

// node returns a Node with a new client, which follows failovers.
func (r *replicated) node() goredis.Node {
	options := *r.primary.Node(r.t).Options
	options.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, *r.address.Load())
	}
	client := redis.NewUniversalClient(&options)
	r.t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: &options}
}

// lag cuts the replica off from its primary. The replica keeps its data and receives no more writes.
func (r *replicated) lag() {
	r.t.Helper()
	if err := r.heir.ReplicaOf(r.t.Context(), "127.0.0.1", "1").Err(); err != nil {
		r.t.Fatal(err)
	}
}

// has waits until the replica has the key.
func (r *replicated) has(key string) {
	r.t.Helper()
	poll.Until(r.t, "the replica has the key", func() bool { return r.heir.Exists(r.t.Context(), key).Val() == 1 })
}

// failOver kills the primary and promotes the replica.
func (r *replicated) failOver() {
	r.t.Helper()
	r.primary.Kill()
	if err := r.heir.ReplicaOf(r.t.Context(), "no", "one").Err(); err != nil {
		r.t.Fatal(err)
	}
	r.address.Store(&r.replica.Addr)
}

// TestFailoversAdmitSecondHolder makes two of three nodes fail over to replicas that lag. Both nodes lose the lock, so
// a second client gets it while the first lease is valid. This is why Redlock needs nodes that do not replicate.
//
// In two counter-cases the second client must get no lock. In one, the two nodes die without a failover. In the other,
// their replicas have the key, which asynchronous replication does not guarantee.
func TestFailoversAdmitSecondHolder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lags, failsOver bool
		want            error
	}{
		"replicas that lag":             {true, true, nil},
		"replicas that have the key":    {false, true, strategies.ErrHeld},
		"independent nodes, which stay": {true, false, strategies.ErrNoQuorum},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []*replicated
			for range 3 {
				all = append(all, startReplicated(t))
			}
			nodes := func() (nodes []goredis.Node) {
				for _, r := range all {
					nodes = append(nodes, r.node())
				}
				return nodes
			}
			c := &cluster{t: t}
			first := c.open(goredis.Config{Nodes: nodes()}, quickly(nil))
			second := c.open(goredis.Config{Nodes: nodes()}, quickly(nil))
			if test.lags {
				for _, r := range all {
					r.lag()
				}
			}
			lease := acquire(t, first, "key")
			for _, r := range all[:2] {
				if !test.lags {
					r.has("key")
				}
				if test.failsOver {
					r.failOver()
				} else {
					r.primary.Kill()
				}
			}
			theirs, err := second.TryAcquire(t.Context(), "key")
			for tries := 1; tries < 100 && errors.Is(err, strategies.ErrNoQuorum) && test.failsOver; tries++ {
				theirs, err = second.TryAcquire(t.Context(), "key") // its connections were to the former primaries
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("the second client's attempt returned %v, want %v", err, test.want)
			}
			if test.want != nil {
				return
			}
			if until := lease.(strategies.Timed).ValidUntil(); !time.Now().Before(until) {
				t.Errorf("the first lease had ended by %v, so that this shows nothing", until)
			}
			release(t, theirs)
		})
	}
}

// TestReplicatedNodesGrantNoLock uses a primary and its two replicas as the three nodes. No client may get a quorum,
// because replicas refuse the SET.
func TestReplicatedNodesGrantNoLock(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	locker := c.open(goredis.Config{}, quickly(nil))
	release(t, acquire(t, locker, "key")) // three nodes that are independent, so far
	if err := c.look[0].ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err(); err != nil {
		t.Fatal(err)
	}
	for _, replica := range c.servers[1:] {
		follow(t, c.servers[0], replica)
	}
	if _, err := locker.TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrNoQuorum) ||
		!redis.HasErrorPrefix(err, "READONLY") {
		t.Errorf("with one primary and two replicas a try returned %v, want ErrNoQuorum because of READONLY", err)
	}
	c.assertNoKey("key", 0)
}
