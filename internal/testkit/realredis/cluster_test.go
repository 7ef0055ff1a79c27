package realredis_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/realredis"
)

// TestMoveManyKeys moves a slot with more keys than one call to Carry moves. Carry must count all keys that remain, and
// Finish must move all of them.
func TestMoveManyKeys(t *testing.T) {
	cluster := realredis.StartCluster(t)
	options := cluster.Options()
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	const keys = 130
	for i := range keys {
		if err := client.Set(t.Context(), fmt.Sprintf("{many}%d", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	move := cluster.Migrate(cluster.Nodes[0].ClusterKeySlot(t.Context(), "{many}").Val())
	if left := move.Carry(10); left != keys-10 {
		t.Errorf("%d keys are left after 10 of %d have moved", left, keys)
	}
	move.Finish()
	for i := range keys {
		if n, err := client.Get(t.Context(), fmt.Sprintf("{many}%d", i)).Int(); n != i || err != nil {
			t.Errorf("key %d has the value %d: %v", i, n, err)
		}
	}
}
