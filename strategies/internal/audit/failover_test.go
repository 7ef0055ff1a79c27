package audit

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// pair is a primary and its replica.
type pair struct {
	t       *testing.T
	nodes   [2]*redis.Client
	primary atomic.Int32
}

func newPair(t *testing.T, nodes ...*redistest.Server) *pair {
	t.Helper()
	p := &pair{t: t}
	for n, node := range nodes {
		p.nodes[n] = node.Client(t)
	}
	return p
}

// replicate has the second follow the first.
func (p *pair) replicate() {
	p.t.Helper()
	host, port, _ := net.SplitHostPort(p.nodes[0].Options().Addr)
	if err := p.nodes[1].Do(p.t.Context(), "REPLICAOF", host, port).Err(); err != nil {
		p.t.Fatal(err)
	}
	p.together()
}

func (p *pair) together() {
	p.t.Helper()
	trial.Eventually(p.t, "the replica follows", func() bool {
		return strings.Contains(p.nodes[1].Info(p.t.Context(), "replication").Val(), "master_link_status:up")
	})
}

func (p *pair) is(node int, role string) bool {
	return strings.Contains(p.nodes[node].Info(p.t.Context(), "replication").Val(), "role:"+role)
}

// dial dials the primary, as a name that follows it does.
func (p *pair) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, p.nodes[p.primary.Load()].Options().Addr)
}

// failOver makes the second the primary, with all that the first had. Nobody's connection
// to the first is closed.
func (p *pair) failOver(args ...any) {
	p.t.Helper()
	node := p.nodes[0]
	if args[0] == "CLUSTER" {
		node = p.nodes[1]
	}
	if err := node.Do(p.t.Context(), args...).Err(); err != nil {
		p.t.Fatal(err)
	}
	trial.Eventually(p.t, "they have changed their parts", func() bool { return p.is(0, "slave") && p.is(1, "master") })
	p.primary.Store(1)
}

const failoverTTL = 15 * time.Second

// survive has several processes wait for the lock over a failover, after which its holder
// releases it: each is served once, one at a time.
func survive(t *testing.T, process func() strategies.Locker, failOver func()) {
	t.Helper()
	holder := process()
	var lockers []strategies.Locker
	for range 8 {
		lockers = append(lockers, process())
	}
	b := &book{t: t}
	lease := acquire(t, holder)
	b.enter("the holder", lease)
	w := b.wait(50*time.Millisecond, lockers...)
	failOver()
	b.leave(lease)
	if err := release(t, lease); err != nil {
		t.Errorf("the release returned %v", err)
	}
	w.all.Wait()
	if b.served != 1+len(lockers) {
		t.Errorf("%d were served, want %d", b.served, 1+len(lockers))
	}
}

// A failover that loses nothing makes no second owner and repeats no token, and all who
// wait are served. Connections to the old primary stay.
func TestFailoverWithoutLoss(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		p := newPair(t, redistest.Start(t, "--repl-diskless-sync-delay", "0"), redistest.Start(t))
		p.replicate()
		process := func() strategies.Locker { return open(t, name, "127.0.0.1:1", p.dial, failoverTTL) }
		survive(t, process, func() { p.failOver("FAILOVER") })
	})
}

// So does one in a cluster.
func TestClusterFailover(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		clustered := []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"}
		p := newPair(t, redistest.Start(t, clustered...), redistest.Start(t, clustered...))
		p.gather()
		process := func() strategies.Locker {
			options := &redis.UniversalOptions{Addrs: []string{p.nodes[0].Options().Addr, p.nodes[1].Options().Addr}, IsClusterMode: true}
			return openBy(t, name, options, failoverTTL)
		}
		survive(t, process, func() { p.failOver("CLUSTER", "FAILOVER") })
	})
}

// gather makes the two a cluster of one primary with a replica.
func (p *pair) gather() {
	p.t.Helper()
	ctx := p.t.Context()
	do := func(node int, args ...any) any {
		p.t.Helper()
		reply, err := p.nodes[node].Do(ctx, args...).Result()
		if err != nil {
			p.t.Fatalf("%v: %v", args, err)
		}
		return reply
	}
	host, port, _ := net.SplitHostPort(p.nodes[0].Options().Addr)
	id := do(0, "CLUSTER", "MYID")
	do(0, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	do(1, "CLUSTER", "MEET", host, port)
	known := func(node int) bool {
		nodes := p.nodes[node].ClusterNodes(ctx).Val()
		return strings.Count(nodes, "\n") == 2 && !strings.Contains(nodes, "handshake")
	}
	trial.Eventually(p.t, "they know each other", func() bool { return known(0) && known(1) })
	do(1, "CLUSTER", "REPLICATE", id)
	p.together()
	serves := func(node int) bool {
		return strings.Contains(p.nodes[node].ClusterInfo(ctx).Val(), "cluster_state:ok") &&
			strings.Contains(p.nodes[node].ClusterNodes(ctx).Val(), "slave")
	}
	trial.Eventually(p.t, "the cluster serves", func() bool { return serves(0) && serves(1) })
}
