package audit

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// A failover by Sentinel, to a replica that had all that the killed primary had, makes no
// second owner, repeats no token and loses nobody.
func TestSentinelFailover(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("Sentinel needs redis-server here: ", err)
	}
	each(t, func(t *testing.T, name string) {
		primary := redistest.Start(t, "--repl-diskless-sync-delay", "0")
		p := trial.NewPair(t, primary, redistest.Start(t))
		p.Replicate()
		addr := trial.StartSentinel(t, p.Addr(0), 5*time.Second)
		watcher := redis.NewSentinelClient(&redis.Options{Addr: addr})
		defer func() { _ = watcher.Close() }()
		poll.Until(t, "Sentinel knows both", func() bool {
			replicas, err := watcher.Replicas(t.Context(), "lock").Result()
			return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
		})
		process := func() strategies.Locker {
			return openBy(t, name, &redis.UniversalOptions{Addrs: []string{addr}, MasterName: "lock"}, failoverTTL)
		}
		survive(t, process, func() {
			if err := p.Nodes[0].Do(t.Context(), "WAIT", 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
			primary.Kill()
			poll.Until(t, "the replica is the primary", func() bool {
				_ = watcher.Failover(context.Background(), "lock").Err() // it may be under way
				return p.Is(1, "master")
			})
		})
	})
}
