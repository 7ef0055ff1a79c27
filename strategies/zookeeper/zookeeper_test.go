package zookeeper_test

import (
	"context"
	"testing"
	"time"

	servers "github.com/lockbench/lockbench/internal/store/zookeeper"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/gozk"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/zookeeper"
)

var shared = drive.Share(servers.Store())

func TestMain(m *testing.M) { shared.Main(m) }

// node returns the node of the server that the tests share.
func node(t *testing.T) gozk.Node {
	t.Helper()
	return gozk.Node{Servers: []string{shared.Get(t).Describe().Address}}
}

func open(t *testing.T, n gozk.Node, ttl time.Duration) *zookeeper.Locker {
	t.Helper()
	l, err := zookeeper.Open(gozk.Config{Nodes: []gozk.Node{n}, Prefix: t.Name() + ":", TTL: ttl}, zookeeper.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func acquire(t *testing.T, l *zookeeper.Locker, key string) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease strategies.Lease, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), drive.Bound)
	defer cancel()
	if err := lease.Release(ctx); err != want {
		t.Fatalf("release: %v, want %v", err, want)
	}
}

// queue returns the number of nodes in the queue of a lock.
func queue(t *testing.T, key string) int {
	t.Helper()
	n := node(t)
	s, err := n.Connect(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	children, err := s.Children(t.Context(), n.Path(t.Name()+":"+key))
	if err != nil {
		t.Fatal(err)
	}
	return len(children.Names)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	n := node(t)
	rounds := 10
	if extent.Thorough() {
		rounds = 0
	}
	locktest.Run(t, func(*testing.T) locktest.Fixture {
		return locktest.Fixture{Rounds: rounds, Open: func(c goredis.Config) (strategies.Locker, error) {
			return zookeeper.Open(gozk.Config{
				Nodes: []gozk.Node{n}, Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers, Probe: c.Probe,
			}, zookeeper.Options{})
		}}
	}, zookeeper.Strategy().Info)
}

// The context of a release is already done. The release must still be executed, because otherwise the session would
// keep the lease as long as the process lives.
func TestReleaseWithAnEndedContext(t *testing.T) {
	t.Parallel()
	one, other := open(t, node(t), 10*time.Second), open(t, node(t), 10*time.Second)
	lease := acquire(t, one, "key")
	ended, end := context.WithCancel(t.Context())
	end()
	if err := lease.Release(ended); err != nil && ended.Err() == nil {
		t.Error(err)
	}
	release(t, acquire(t, other, "key"), nil)
}
