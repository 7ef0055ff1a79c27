package audit

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// sentinel starts one that watches a primary and returns its address.
func sentinel(t *testing.T, primary string) string {
	t.Helper()
	free, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	own := strconv.Itoa(free)
	addr := net.JoinHostPort("127.0.0.1", own)
	host, port, _ := net.SplitHostPort(primary)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\nsentinel monitor lock %s %s 1\nsentinel down-after-milliseconds lock 5000\n", own, host, port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", conf, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return addr
}

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
		addr := sentinel(t, p.Addr(0))
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
