package realredis

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// MasterName is the name under which the Sentinels of tests watch a primary.
const MasterName = "lock"

// sentinelUser is the user name with which the Sentinel of a Watched connects to the servers.
const sentinelUser = "sentinel"

// StartSentinel starts a Sentinel that watches a primary as MasterName. The Sentinel considers the primary down if it
// has not replied for the duration down. more contains additional lines of the Sentinel's configuration. StartSentinel
// returns the Sentinel's address.
func StartSentinel(t testing.TB, primary string, down time.Duration, more ...string) string {
	t.Helper()
	free, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	own := strconv.Itoa(free)
	host, port, _ := net.SplitHostPort(primary)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\n"+
		"sentinel monitor %[2]s %s %s 1\nsentinel down-after-milliseconds %[2]s %[5]d\n%s\n", own, MasterName, host, port,
		down.Milliseconds(), strings.Join(more, "\n"))
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
	return net.JoinHostPort("127.0.0.1", own)
}

// Watched is a primary and its replica, which a Sentinel watches as MasterName.
type Watched struct {
	Servers  [2]*Server       // the first primary first
	Nodes    [2]*redis.Client // one client per server
	Sentinel string           // its address

	t     testing.TB
	admin *redis.SentinelClient
}

// StartWatched starts two servers and a Sentinel, and returns when the Sentinel is able to fail over.
func StartWatched(t testing.TB) *Watched {
	t.Helper()
	w := &Watched{t: t}
	for i := range w.Servers {
		w.Servers[i] = Start(t, "--repl-diskless-sync-delay", "0")
		w.Nodes[i] = Look(t, &redis.Options{Addr: w.Servers[i].Addr})
		w.must(w.Nodes[i].Do(t.Context(), "ACL", "SETUSER", sentinelUser, "on", ">"+sentinelUser, "~*", "&*", "+@all").Err())
	}
	host, port, _ := net.SplitHostPort(w.Servers[0].Addr)
	w.must(w.Nodes[1].ReplicaOf(t.Context(), host, port).Err())
	poll.Until(t, "the replica follows", func() bool {
		return strings.Contains(w.Nodes[1].Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	// Until the test triggers the failover, a primary that replies late on a busy machine must not count as down.
	const down, failover = 30 * time.Second, 5 * time.Second
	w.Sentinel = StartSentinel(t, w.Servers[0].Addr, down,
		fmt.Sprintf("sentinel failover-timeout %s %d", MasterName, failover.Milliseconds()),
		fmt.Sprintf("sentinel auth-user %s %s", MasterName, sentinelUser),
		fmt.Sprintf("sentinel auth-pass %s %s", MasterName, sentinelUser))
	w.admin = redis.NewSentinelClient(&redis.Options{
		Addr: w.Sentinel, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = w.admin.Close() })
	poll.Until(t, "the Sentinel knows the replica", func() bool {
		replicas, err := w.admin.Replicas(t.Context(), MasterName).Result()
		return err == nil && len(replicas) == 1 && replicas[0]["flags"] == "slave" &&
			replicas[0]["master-link-status"] == "ok"
	})
	return w
}

// KeepOld makes the first primary stay a master after Failover, like a primary that its Sentinel can no longer reach.
// The first primary then refuses the Sentinel's command to become a replica.
func (w *Watched) KeepOld() {
	w.t.Helper()
	w.must(w.Nodes[0].Do(w.t.Context(), "ACL", "SETUSER", sentinelUser, "-slaveof", "-replicaof").Err())
}

// Failover makes the Sentinel promote the second server, and returns when the Sentinel names the new primary. It works
// once. Without KeepOld the first server becomes a replica some ten seconds later.
func (w *Watched) Failover() {
	w.t.Helper()
	w.must(w.admin.Failover(w.t.Context(), MasterName).Err())
	poll.Until(w.t, "the Sentinel names the new primary", func() bool {
		addr, err := w.admin.GetMasterAddrByName(w.t.Context(), MasterName).Result()
		return err == nil && net.JoinHostPort(addr[0], addr[1]) == w.Servers[1].Addr
	})
}

// Is reports whether a server has the given role: master or slave.
func (w *Watched) Is(server int, role string) bool {
	return strings.Contains(w.Nodes[server].Info(w.t.Context(), "replication").Val(), "role:"+role)
}

// FailoverOptions returns the options with which redis.NewFailoverClient finds the primary through the Sentinel.
func (w *Watched) FailoverOptions() *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: MasterName, SentinelAddrs: []string{w.Sentinel},
		DisableIdentity: true, ContextTimeoutEnabled: true,
	}
}

// UniversalOptions returns the options with which redis.NewUniversalClient finds the primary through the Sentinel.
func (w *Watched) UniversalOptions() *redis.UniversalOptions {
	return &redis.UniversalOptions{
		MasterName: MasterName, Addrs: []string{w.Sentinel},
		DisableIdentity: true, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func (w *Watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
