package handoff_test

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// TestCluster is not parallel. On a machine that is busy with other tests, a node may take longer to reply than a
// client tolerates.
func TestCluster(t *testing.T) {
	top := redistest.StartTopology(t, "cluster:3")
	for _, test := range []struct {
		name string
		play func(*testing.T, *redistest.Topology)
	}{
		{"keys of all kinds", anyKey},
		{"many keys", manyKeys},
		{"a client of one node", clientOfOneNode},
		{"a refused channel", refusedChannel},
	} {
		t.Run(test.name, func(t *testing.T) { test.play(t, top) })
	}
}

// In a cluster a process receives grant messages on the sharded channel of the lock's hash slot, whatever the key
// contains. The check "moving slot" of the conformance suite tests that waiters keep working when a hash slot moves to
// another node.
func anyKey(t *testing.T, top *redistest.Topology) {
	process := func(variant string) trial.Process {
		p := openOn(t, top.Nodes(t)[0], variant, time.Hour)
		if err := locker(p).Prepare(t.Context(), []string{"key", "a}b"}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b, h := process("handoff:linger=0s"), process("handoff:linger=1h"), process("handoff:linger=0s")
	client := a.Config.Nodes[0].Client.(*redis.ClusterClient)
	q := newQueueOn(t, nil)
	for _, key := range []string{"key", "{a}b", "a{b", "a}b", "{}odd", "a{}b{c}", "}{", "{{a}}", "", "ä\x00 "} {
		lease := acquireKey(t, h, key)
		q.joinFor(key, "a1", a, time.Hour)
		q.joinFor(key, "a2", a, time.Hour)
		q.joinFor(key, "b1", b, time.Hour)
		trial.Release(t, q.turns(lease, "a1 a2 b1"))
	}
	poll.Until(t, "nothing is left", func() bool {
		var left atomic.Int64
		err := client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			n, err := node.DBSize(ctx).Result()
			left.Add(n)
			return err
		})
		return err == nil && left.Load() == 0
	})
}

// A client created for a single node of a cluster cannot use the lock. It gets an error, at the latest at its first
// release.
func clientOfOneNode(t *testing.T, top *redistest.Topology) {
	options := &redis.UniversalOptions{Addrs: top.Addrs()[:1], Password: top.Password(t)}
	p := open(t, options, "handoff", time.Minute)
	acquired, elsewhere := 0, 0
	for n := range 50 { // in slots of all nodes
		lease, err := p.Locker.Acquire(t.Context(), fmt.Sprint(n))
		if err == nil {
			acquired++
			err = lease.Release(t.Context())
		} else {
			elsewhere++
		}
		if err == nil || !strings.Contains(err.Error(), "create the client with redis.NewClusterClient") {
			t.Errorf("%d: it returned %v", n, err)
		}
	}
	if acquired == 0 || elsewhere == 0 {
		t.Errorf("%d were acquired, and %d are on other nodes", acquired, elsewhere)
	}
}

// If the user may not subscribe to a lock's channel, waiting for that lock returns NOPERM. Locks on the same node whose
// channels are permitted still work.
func refusedChannel(t *testing.T, top *redistest.Topology) {
	admin := top.Nodes(t)[0].Client.(*redis.ClusterClient)
	err := admin.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		return node.Do(ctx, "ACL", "SETUSER", "default", "resetchannels", "&*good*").Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	h, p := openOn(t, top.Nodes(t)[0], "handoff", time.Hour), openOn(t, top.Nodes(t)[0], "handoff", time.Hour)
	q := newQueueOn(t, nil)
	const good, bad = "{tag}good", "{tag}bad"
	lease := acquireKey(t, h, good)
	q.joinFor(good, "a1", p, time.Hour)
	for n := range 4 {
		defer trial.Release(t, h.Acquire(t, fmt.Sprint(bad, n)))
	}
	for range 3 {
		var waits sync.WaitGroup
		for n := range 4 { // at once: a refusal does not name its channel
			waits.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := p.Locker.Acquire(ctx, fmt.Sprint(bad, n)); !redis.HasErrorPrefix(err, "NOPERM") {
					t.Errorf("a wait without the right to listen returned %v", err)
				}
			})
		}
		waits.Wait()
	}
	trial.Release(t, q.turns(lease, "a1"))
}

// After a process has used locks on many keys of a cluster, it keeps no connection or goroutine per key.
func manyKeys(t *testing.T, top *redistest.Topology) {
	const keys = 200
	c := redistest.ClusterOf(t, top)
	options := c.Options()
	for _, variant := range both {
		connections, goroutines := infoOfAll(t, c, "clients", "connected_clients"), runtime.NumGoroutine()
		a, b := open(t, &options, variant, time.Hour), open(t, &options, variant, time.Hour)
		q := newQueueOn(t, nil)
		q.insist = true
		var leases []*holding
		for n := range keys {
			key := fmt.Sprint("key", n)
			leases = append(leases, acquireKey(t, a, key))
			q.requestWithTTL(key, "waiter", b, time.Hour)
		}
		for _, lease := range leases {
			released(t, lease)
		}
		for range keys {
			released(t, q.any().lease)
		}
		poll.Until(t, "few connections and goroutines are left", func() bool {
			more := infoOfAll(t, c, "clients", "connected_clients") - connections
			return more <= fewConnections && runtime.NumGoroutine()-goroutines <= 200
		})
	}
}

// infoOfAll returns the sum of the INFO field figure over all nodes of the cluster.
func infoOfAll(t *testing.T, c *redistest.Cluster, section, figure string) (sum int64) {
	t.Helper()
	for _, node := range c.Nodes {
		sum += info(t, node, section, figure)
	}
	return sum
}

// info returns the number in the INFO field figure of a section.
func info(t *testing.T, server *redis.Client, section, figure string) (n int64) {
	t.Helper()
	text, err := server.Info(t.Context(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(text, figure+":")
	if _, err := fmt.Sscan(rest, &n); !found || err != nil {
		t.Fatalf("INFO has no %s", figure)
	}
	return n
}

// After a failover by Sentinel to a replica that has all data of the killed primary, the lock has only one owner, no
// token is repeated, and each waiter gets the lock once.
func TestSentinelFailover(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("Sentinel needs redis-server here: ", err)
	}
	each(t, both, func(t *testing.T, variant string) {
		const ttl, waiters = 15 * time.Second, 8
		p := redistest.StartPair(t)
		addr := redistest.StartSentinel(t, p.Addr(0), 5*time.Second)
		watcher := redis.NewSentinelClient(&redis.Options{Addr: addr})
		defer func() { _ = watcher.Close() }()
		poll.Until(t, "Sentinel knows both", func() bool {
			replicas, err := watcher.Replicas(t.Context(), "lock").Result()
			return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
		})
		options := &redis.UniversalOptions{Addrs: []string{addr}, MasterName: "lock"}
		q := newQueueOn(t, nil)
		q.insist = true // Redis may be out of reach
		lease := acquire(t, open(t, options, variant, ttl))
		for n := range waiters {
			q.join(fmt.Sprint(n), open(t, options, variant, ttl))
		}
		p.Together()
		p.Kill()
		poll.Until(t, "the replica is the primary", func() bool {
			_ = watcher.Failover(context.Background(), "lock").Err() // it may be under way
			return p.Is(1, "master")
		})
		released(t, lease)
		for range waiters {
			s := q.any()
			if s.err != nil {
				t.Fatalf("%s got: %v", s.who, s.err)
			}
			released(t, s.lease)
		}
	})
}
