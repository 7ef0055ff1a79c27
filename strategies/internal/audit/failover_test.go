package audit

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

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
		p := trial.StartPair(t)
		process := func() strategies.Locker { return open(t, name, "127.0.0.1:1", p.Dial, failoverTTL) }
		survive(t, process, func() { p.FailOver("FAILOVER") })
	})
}

// So does one in a cluster.
func TestClusterFailover(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		clustered := []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"}
		p := trial.NewPair(t, redistest.Start(t, clustered...), redistest.Start(t, clustered...))
		gather(t, p)
		process := func() strategies.Locker {
			options := &redis.UniversalOptions{Addrs: []string{p.Addr(0), p.Addr(1)}, IsClusterMode: true}
			return openBy(t, name, options, failoverTTL)
		}
		survive(t, process, func() { p.FailOver("CLUSTER", "FAILOVER") })
	})
}

// gather makes the two a cluster of one primary with a replica.
func gather(t *testing.T, p *trial.Pair) {
	t.Helper()
	ctx := t.Context()
	do := func(node int, args ...any) any {
		t.Helper()
		reply, err := p.Nodes[node].Do(ctx, args...).Result()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return reply
	}
	host, port, _ := net.SplitHostPort(p.Addr(0))
	id := do(0, "CLUSTER", "MYID")
	do(0, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	do(1, "CLUSTER", "MEET", host, port)
	known := func(node int) bool {
		nodes := p.Nodes[node].ClusterNodes(ctx).Val()
		return strings.Count(nodes, "\n") == 2 && !strings.Contains(nodes, "handshake")
	}
	poll.Until(t, "they know each other", func() bool { return known(0) && known(1) })
	do(1, "CLUSTER", "REPLICATE", id)
	p.Together()
	serves := func(node int) bool {
		return strings.Contains(p.Nodes[node].ClusterInfo(ctx).Val(), "cluster_state:ok") &&
			strings.Contains(p.Nodes[node].ClusterNodes(ctx).Val(), "slave")
	}
	poll.Until(t, "the cluster serves", func() bool { return serves(0) && serves(1) })
}
