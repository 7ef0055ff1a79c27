package handoff_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// In a cluster a grant goes by the sharded channel of the lock's slot, whatever the key,
// and waiters follow the slot when it moves.
func TestCluster(t *testing.T) {
	t.Parallel()
	top := redistest.StartTopology(t, "cluster:3")
	open := func() trial.Process {
		config := strategies.Config{Nodes: top.Nodes(t), Prefix: "trial:", TTL: time.Hour}
		locker, err := handoff.New(config, handoff.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locker.Close() })
		if err := locker.Prepare(t.Context(), []string{"key"}); err != nil {
			t.Fatal(err)
		}
		return trial.Process{Locker: locker, Config: config}
	}
	a, b := open(), open()
	client := a.Config.Nodes[0].Client.(*redis.ClusterClient)
	length := func(name string) int64 { return client.LLen(t.Context(), name).Val() }
	wait := func(p trial.Process, key, name string, leases chan strategies.Lease) chan strategies.Lease {
		before := length(name)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			lease, err := p.Locker.Acquire(ctx, key)
			if err != nil {
				t.Errorf("key %q: %v", key, err)
			}
			leases <- lease
		}()
		trial.Eventually(t, "a waiter is queued for "+key, func() bool { return length(name) > before })
		return leases
	}
	for key, name := range map[string]string{
		"key":   "trial:key:handoff",
		"{a}b":  "trial:{a}b:handoff",
		"a{b":   "trial:a{b:handoff",
		"{}odd": "", // its tag is a hash
	} {
		lease := a.Acquire(t, key)
		if name == "" {
			for _, shard := range top.Addrs() {
				node := redis.NewClient(&redis.Options{Addr: shard})
				for _, found := range node.Keys(t.Context(), "{*odd:handoff").Val() {
					name = found
				}
				_ = node.Close()
			}
		}
		first, second := wait(b, key, name, make(chan strategies.Lease, 1)), wait(a, key, name, make(chan strategies.Lease, 1))
		trial.Release(t, lease)
		trial.Release(t, <-first)
		trial.Release(t, <-second)
	}

	// Who has not found the new node yet when it is its turn comes later.
	lease := a.Acquire(t, "key")
	either := wait(b, "key", list, wait(a, "key", list, make(chan strategies.Lease, 2)))
	move(t, client, top.Addrs(), list)
	trial.Release(t, lease)
	for range 2 {
		if lease := <-either; lease != nil {
			trial.Release(t, lease)
		}
	}
}

// move gives a key's slot to another node.
func move(t *testing.T, client *redis.ClusterClient, addrs []string, key string) {
	t.Helper()
	ctx := t.Context()
	slot := client.ClusterKeySlot(ctx, key).Val()
	owner, err := client.MasterForKey(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	from := owner.Options().Addr
	var to string
	for _, addr := range addrs {
		if addr != from {
			to = addr
		}
	}
	node := func(addr string) (*redis.Client, string) {
		c := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = c.Close() })
		return c, c.Do(ctx, "CLUSTER", "MYID").Val().(string)
	}
	source, sourceID := node(from)
	target, targetID := node(to)
	do := func(c *redis.Client, args ...any) {
		if err := c.Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	do(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID)
	do(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID)
	host, port, _ := strings.Cut(to, ":")
	for {
		keys := source.ClusterGetKeysInSlot(ctx, int(slot), 10).Val()
		if len(keys) == 0 {
			break
		}
		for _, k := range keys {
			do(source, "MIGRATE", host, port, k, 0, 5000)
		}
	}
	for _, addr := range append([]string{to, from}, addrs...) {
		c, _ := node(addr)
		do(c, "CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", targetID)
	}
}
