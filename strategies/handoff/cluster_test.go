package handoff_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// In a cluster a process is told by the sharded channel of the lock's slot, whatever the
// key, and waiters follow the slot when it moves.
func TestCluster(t *testing.T) {
	t.Parallel()
	top := redistest.StartTopology(t, "cluster:3")
	open := func(linger time.Duration) trial.Process {
		config := goredis.Config{Nodes: top.Nodes(t), Prefix: "trial:", TTL: time.Hour}
		l, err := handoff.Open(config, handoff.Options{Linger: linger})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if err := l.Prepare(t.Context(), []string{"key", "a}b"}); err != nil {
			t.Fatal(err)
		}
		return trial.Process{Locker: l, Config: config}
	}
	a, b, h := open(0), open(time.Hour), open(0)
	client := a.Config.Nodes[0].Client.(*redis.ClusterClient)
	c := &crowd{t: t, served: make(chan served, 100)}
	for _, key := range []string{"key", "{a}b", "a{b", "a}b", "{}odd", "a{}b{c}", "}{", "{{a}}", "", "ä\x00 "} {
		lease := h.Acquire(t, key)
		c.wait(key, "a1", a)
		c.wait(key, "a2", a)
		c.wait(key, "b1", b)
		for _, who := range []string{"a1", "a2", "b1"} {
			trial.Release(t, lease)
			lease = c.next(who)
		}
		trial.Release(t, lease)
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

	// Who has not found the new node yet when it is his turn comes later.
	lease := h.Acquire(t, "key")
	c.wait("key", "a1", a)
	c.wait("key", "b1", b)
	trial.ClusterOf(t, top).Migrate(client.ClusterKeySlot(t.Context(), lock).Val()).Finish()
	trial.Release(t, lease)
	for range 2 {
		s := <-c.served
		if s.err != nil {
			t.Fatalf("%s got: %v", s.who, s.err)
		}
		trial.Release(t, s.lease)
	}
}

// crowd is callers who wait for any key.
type crowd struct {
	t      *testing.T
	served chan served
}

// wait has somebody wait, and returns when he does, at Redis.
func (c *crowd) wait(key, who string, p trial.Process) {
	c.t.Helper()
	before, _ := handoff.Waiting(locker(p), key)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		lease, err := p.Locker.Acquire(ctx, key)
		held, _ := lease.(*handoff.Lease)
		c.served <- served{who, held, err}
	}()
	poll.Until(c.t, "somebody waits for "+key, func() bool {
		n, queued := handoff.Waiting(locker(p), key)
		return n > before && queued
	})
}

// next must be that one.
func (c *crowd) next(who string) *handoff.Lease {
	c.t.Helper()
	s := <-c.served
	if s.err != nil || s.who != who {
		c.t.Fatalf("%s was served, or got: %v, when it was %s's turn", s.who, s.err, who)
	}
	return s.lease
}

// A client of one node of a cluster cannot have the lock: it is told so, at the latest where it releases.
func TestClientOfOneNode(t *testing.T) {
	t.Parallel()
	top := redistest.StartTopology(t, "cluster:3")
	options := &redis.UniversalOptions{Addrs: top.Addrs()[:1], Password: top.Password(t)}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	l, err := handoff.Open(goredis.Config{Nodes: []goredis.Node{{Client: client, Options: options}}, Prefix: "trial:", TTL: time.Minute}, handoff.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	acquired, elsewhere := 0, 0
	for n := range 50 { // in slots of all nodes
		lease, err := l.Acquire(t.Context(), fmt.Sprint(n))
		if err == nil {
			acquired++
			err = lease.Release(t.Context())
		} else {
			elsewhere++
		}
		if err == nil || !strings.Contains(err.Error(), "make it with redis.NewClusterClient") {
			t.Errorf("%d: it returned %v", n, err)
		}
	}
	if acquired == 0 || elsewhere == 0 {
		t.Errorf("%d were acquired, and %d are on other nodes", acquired, elsewhere)
	}
}

// A lock whose channel the user may not listen to is refused, at once; it disturbs no other on the
// same node.
func TestARefusedChannel(t *testing.T) {
	t.Parallel()
	top := redistest.StartTopology(t, "cluster:3")
	admin := top.Nodes(t)[0].Client.(*redis.ClusterClient)
	err := admin.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		return node.Do(ctx, "ACL", "SETUSER", "default", "resetchannels", "&*good*").Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	open := func() trial.Process {
		config := goredis.Config{Nodes: top.Nodes(t), Prefix: "trial:", TTL: time.Hour}
		l, err := handoff.Open(config, handoff.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return trial.Process{Locker: l, Config: config}
	}
	h, p := open(), open()
	c := &crowd{t: t, served: make(chan served, 100)}
	const good, bad = "{tag}good", "{tag}bad"
	lease, other := h.Acquire(t, good), h.Acquire(t, bad)
	c.wait(good, "a1", p)
	listener := handoff.Listener(locker(p))
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := p.Locker.Acquire(ctx, bad); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("a wait without the right to listen returned %v", err)
		}
		cancel()
	}
	if handoff.Listener(locker(p)) != listener {
		t.Error("the process had to listen again for the other lock")
	}
	trial.Release(t, lease)
	trial.Release(t, c.next("a1"))
	trial.Release(t, other)
}
