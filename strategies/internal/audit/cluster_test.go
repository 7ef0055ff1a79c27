package audit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// A slot that moves does not have processes connect again and again. A release meanwhile
// succeeds when the move ends, or before, and those who wait are served.
func TestMovingSlot(t *testing.T) {
	t.Parallel()
	c := trial.StartCluster(t)
	for _, name := range []string{"handoff", "cohort"} {
		t.Run(name, func(t *testing.T) { // one after the other: both use the same slot
			holder, waiter := openIn(t, c, name, time.Hour), openIn(t, c, name, time.Hour)
			b := &book{t: t}
			lease := acquire(t, holder)
			b.enter("the holder", lease)
			w := b.wait(0, waiter)
			m := c.Migrate(c.SlotInUse())
			before := countAll(t, c, "stats", "total_connections_received")
			disconnect(t, m.From()) // so that all have something to ask
			time.Sleep(500 * time.Millisecond)
			m.Carry(1) // of several keys some are here and some there
			disconnect(t, m.From())
			time.Sleep(500 * time.Millisecond)
			released := make(chan error, 1)
			go func() {
				b.leave(lease)
				released <- release(t, lease)
			}()
			time.Sleep(500 * time.Millisecond)
			if n := countAll(t, c, "stats", "total_connections_received") - before; n > 60 {
				t.Errorf("two processes made %d connections in 1.5 s of a slot's move", n)
			}
			m.Finish()
			if err := <-released; err != nil {
				t.Errorf("the release returned %v", err)
			}
			w.all.Wait()
		})
	}
}

// Locks on many keys of a cluster do not keep a connection or goroutines each.
func TestManyKeysOfACluster(t *testing.T) {
	t.Parallel()
	const keys, atOnce = 400, 20
	c := trial.StartCluster(t)
	for _, name := range []string{"handoff", "cohort"} {
		t.Run(name, func(t *testing.T) {
			connections := countAll(t, c, "clients", "connected_clients")
			labelled(t, func(ctx context.Context, goroutines func() int) {
				a, b := openIn(t, c, name, time.Hour), openIn(t, c, name, time.Hour)
				var all sync.WaitGroup
				for n := range atOnce {
					all.Go(func() {
						for k := n; k < keys; k += atOnce {
							contend(ctx, t, fmt.Sprint("key", k), a, b)
						}
					})
				}
				all.Wait()
				few := func() bool {
					return countAll(t, c, "clients", "connected_clients")-connections <= 60 && goroutines() <= 200
				}
				for end := time.Now().Add(3 * time.Second); !few() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				}
				if !few() {
					t.Errorf("%d connections and %d goroutines are left of 2 processes that used %d keys",
						countAll(t, c, "clients", "connected_clients")-connections, goroutines(), keys)
				}
			})
		})
	}
}

// openIn opens one process of a lock that knows all nodes of a cluster.
func openIn(t *testing.T, c *trial.Cluster, name string, ttl time.Duration) strategies.Locker {
	t.Helper()
	options := c.Options()
	return openBy(t, name, &options, ttl)
}

// contend has one process wait for the lock that another one holds.
func contend(ctx context.Context, t *testing.T, key string, holder, waiter strategies.Locker) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lease, err := holder.Acquire(ctx, key)
	if err != nil {
		t.Error(err)
		return
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		theirs, err := waiter.Acquire(ctx, key)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			return
		}
		_ = theirs.Release(ctx)
	})
	time.Sleep(5 * time.Millisecond)
	if err := lease.Release(ctx); err != nil {
		t.Errorf("%s: release: %v", key, err)
	}
	waiting.Wait()
}

// countAll sums a figure of INFO over the nodes.
func countAll(t *testing.T, c *trial.Cluster, section, figure string) (sum int64) {
	t.Helper()
	for _, node := range c.Nodes {
		sum += info(t, node, section, figure)
	}
	return sum
}

// info is a figure of INFO.
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
