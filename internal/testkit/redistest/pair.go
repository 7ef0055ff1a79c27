package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// Pair is a primary and its replica, which can change roles.
type Pair struct {
	Nodes [2]*redis.Client // one to look at each, the first primary first

	t       testing.TB
	primary atomic.Int32
}

// StartPair starts two servers; the second follows the first.
func StartPair(t testing.TB) *Pair {
	t.Helper()
	soon := []string{"--repl-diskless-sync-delay", "0"}
	p := NewPair(t, Start(t, soon...), Start(t, soon...))
	p.Replicate()
	return p
}

// NewPair returns two servers that do not know each other yet.
func NewPair(t testing.TB, first, second *Server) *Pair {
	t.Helper()
	return &Pair{t: t, Nodes: [2]*redis.Client{first.Client(t), second.Client(t)}}
}

// Replicate makes the second follow the first.
func (p *Pair) Replicate() {
	p.t.Helper()
	host, port, _ := net.SplitHostPort(p.Addr(0))
	if err := p.Nodes[1].Do(p.t.Context(), "REPLICAOF", host, port).Err(); err != nil {
		p.t.Fatal(err)
	}
	p.Together()
}

// Together waits until the replica has what the primary has.
func (p *Pair) Together() {
	p.t.Helper()
	replica := p.Nodes[1-p.primary.Load()]
	poll.Until(p.t, "the replica follows", func() bool {
		return strings.Contains(replica.Info(p.t.Context(), "replication").Val(), "master_link_status:up")
	})
}

// Addr returns a node's address.
func (p *Pair) Addr(node int) string { return p.Nodes[node].Options().Addr }

// Primary returns the client of the primary.
func (p *Pair) Primary() *redis.Client { return p.Nodes[p.primary.Load()] }

// Is says whether a node has a role, master or slave.
func (p *Pair) Is(node int, role string) bool {
	return strings.Contains(p.Nodes[node].Info(p.t.Context(), "replication").Val(), "role:"+role)
}

// Dial dials the primary, as a name that follows it does.
func (p *Pair) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, p.Primary().Options().Addr)
}

// FailOver makes the replica the primary, with all that the primary had. It closes no connection.
func (p *Pair) FailOver() {
	p.t.Helper()
	old := int(p.primary.Load())
	if err := p.Nodes[old].Do(p.t.Context(), "FAILOVER").Err(); err != nil {
		p.t.Fatal(err)
	}
	poll.Until(p.t, "they have changed their parts", func() bool { return p.Is(old, "slave") && p.Is(1-old, "master") })
	p.primary.Store(int32(1 - old))
}

// StartSentinel starts a Sentinel that watches a primary as "lock", and takes it for dead after so
// long. It returns the Sentinel's address.
func StartSentinel(t testing.TB, primary string, down time.Duration) string {
	t.Helper()
	free, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	own := strconv.Itoa(free)
	host, port, _ := net.SplitHostPort(primary)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\n"+
		"sentinel monitor lock %s %s 1\nsentinel down-after-milliseconds lock %d\n", own, host, port,
		down.Milliseconds())
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
