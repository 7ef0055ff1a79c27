package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// No node of a cluster replies. Calls must end with their contexts, even the first calls, which must discover the nodes
// and whether the cluster has sharded channels.
func TestCallsEndWhileAClusterHangs(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	for _, variant := range []string{"pubsub", "fair", "semaphore:permits=1"} {
		t.Run(variant, func(t *testing.T) {
			path, options := &netfault.Path{}, c.Options()
			options.Dialer, options.ReadTimeout, options.DisableIdentity = path.Dial, 8*time.Second, true
			client := redis.NewUniversalClient(&options)
			t.Cleanup(func() { _ = client.Close() })
			other := trial.StartOn(t, []goredis.Node{{Client: redistest.DialCluster(t, options.Password, options.Addrs...)}},
				variant, time.Hour)
			config := goredis.Config{
				Nodes: []goredis.Node{{Client: client, Options: &options}}, Prefix: "trial:", TTL: time.Hour,
			}
			locker, err := goredis.Open(trial.Variant(t, variant), config)
			if err != nil {
				t.Fatal(err)
			}
			lease := other.Acquire(t, "taken")
			path.Stall(true)
			acquire := func(key string) func(context.Context) error {
				return func(ctx context.Context) error { _, err := locker.Acquire(ctx, key); return err }
			}
			ends(t, "the first Acquire", acquire("free"))
			prepared, _ := strategies.As[strategies.Preparer](locker)
			ends(t, "Prepare", func(ctx context.Context) error { return prepared.Prepare(ctx, nil) })
			path.Stall(false)
			trial.Release(t, other.Acquire(t, "free"))
			trial.Release(t, lease)
			path.Stall(true)
			began := time.Now()
			if err := locker.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("Close took %v", took)
			}
			path.Stall(false)
		})
	}
}
