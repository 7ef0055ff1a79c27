package realredis_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/realredis"
)

// After Failover with KeepOld, a failover client and a universal client must move to the new primary. The old primary
// must stay a master, even after the Sentinel has tried to make it a replica.
func TestFailoverKeepsOldPrimaryAsMaster(t *testing.T) {
	w := realredis.StartWatched(t)
	w.KeepOld()
	failover := redis.NewFailoverClient(w.FailoverOptions())
	universal := redis.NewUniversalClient(w.UniversalOptions())
	t.Cleanup(func() { _, _ = failover.Close(), universal.Close() })
	for i, client := range []redis.UniversalClient{failover, universal} {
		name := []string{"failover", "universal"}[i]
		if err := client.Set(t.Context(), name, "old", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	w.Failover()
	for i, client := range []redis.UniversalClient{failover, universal} {
		name := []string{"failover", "universal"}[i]
		poll.Until(t, "the "+name+" client is at the new primary", func() bool {
			return client.Set(t.Context(), name, "new", 0).Err() == nil && w.Nodes[1].Get(t.Context(), name).Val() == "new"
		})
	}
	if testing.Short() {
		return
	}
	poll.Until(t, "the old primary has refused to follow", func() bool {
		refused, err := w.Nodes[0].ACLLog(t.Context(), 10).Result()
		return err == nil && slices.ContainsFunc(refused, func(entry *redis.ACLLogEntry) bool {
			return entry.Object == "slaveof"
		})
	})
	for server := range w.Servers {
		if !w.Is(server, "master") {
			t.Errorf("server %d is not a master after the failover", server)
		}
	}
}

// Without KeepOld, the Sentinel must make the old primary a replica of the new one.
func TestFailoverDemotesTheOldPrimary(t *testing.T) {
	if testing.Short() {
		t.Skip("a Sentinel takes ten seconds to make the old primary a replica")
	}
	w := realredis.StartWatched(t)
	w.Failover()
	poll.Until(t, "the old primary is a replica", func() bool { return w.Is(0, "slave") && w.Is(1, "master") })
}
