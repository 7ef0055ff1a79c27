//go:build !race

package model

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// The model's messages stay on the server on which they are said. So do those of grant.lua:
// who listens at a replica hears nothing of a grant that he sees there.
func TestReplicaDoesNotTell(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clients := redistest.StartTopology(t, "replicas:1").Clients(t)
	primary, replica := clients[0], clients[1]
	const base, lock = "{m}:", "lock"
	listen := func(client *redis.Client) *redis.PubSub {
		ear := client.SSubscribe(ctx, base+processes[1])
		t.Cleanup(func() { _ = ear.Close() })
		if _, err := ear.ReceiveTimeout(ctx, 20*time.Second); err != nil {
			t.Fatal(err)
		}
		return ear
	}
	here, there := listen(primary), listen(replica)
	_, err := primary.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		setUp(ctx, pipe, server{owner: 1, marked: true, left: 1, queue: [places]ident{idsEach + 1}, kept: true}, lock)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{lock, "{" + lock + "}:handoff"}
	code, err := primary.Eval(ctx, source(t, "free")+source(t, "grant")+source(t, "release"), keys, base, processes[0], idOf(1), "100", "").Int()
	if err != nil || code != 2 {
		t.Fatalf("the release answers %d, %v", code, err)
	}
	if m, err := here.ReceiveTimeout(ctx, 20*time.Second); err != nil {
		t.Fatalf("the primary tells %v: %v", m, err)
	}
	if n, err := primary.Wait(ctx, 1, 20*time.Second).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas have it, %v", n, err)
	}
	if owner := replica.Get(ctx, lock).Val(); owner != idOf(idsEach+1)+"+" {
		t.Fatalf("at the replica the owner is %q", owner)
	}
	if err := replica.SPublish(ctx, base+processes[1], "end").Err(); err != nil {
		t.Fatal(err)
	}
	m, err := there.ReceiveTimeout(ctx, 20*time.Second)
	if message, ok := m.(*redis.Message); err != nil || !ok || message.Payload != "end" {
		t.Fatalf("the replica tells %v, %v", m, err)
	}
}
