package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/etcd"
)

// tokens takes the lock again and again, and tells every token that does not grow.
type tokens struct {
	t    *testing.T
	last int64
}

func (g *tokens) took(lease strategies.Lease) {
	g.t.Helper()
	if now := token(lease); now <= g.last {
		g.t.Errorf("token %d came after %d", now, g.last)
	} else {
		g.last = now
	}
}

// insist acquires although etcd fails for a while.
func (g *tokens) insist(locker *etcd.Locker) strategies.Lease {
	g.t.Helper()
	for end := time.Now().Add(drive.Bound); ; {
		ctx, cancel := context.WithTimeout(g.t.Context(), 10*time.Second)
		lease, err := locker.Acquire(ctx, "key")
		cancel()
		if err == nil {
			g.took(lease)
			return lease
		}
		if time.Now().After(end) {
			g.t.Fatal(err)
		}
	}
}

// insistOn releases although etcd fails for a while.
func insistOn(t *testing.T, lease strategies.Lease) {
	t.Helper()
	poll.Until(t, "the lock is released", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
		defer cancel()
		return lease.Release(ctx) == nil
	})
}

// often is how often a server is lost.
func often(all int) int {
	if extent.Thorough() {
		return all
	}
	return 1
}

// A lock is held over a restart, by who held it, and tokens grow.
func TestTokensGrowOverARestart(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 1)
	each(t, func(t *testing.T, options etcd.Options) {
		grow := &tokens{t: t}
		locker, client := open(t, server, options, 10*time.Second)
		other, _ := open(t, server, options, 10*time.Second)
		for range often(3) {
			lease := grow.insist(locker)
			next := waits(t, t.Context(), other, client, "key")
			server.Kill(0)
			server.Again(0)
			if _, err := locker.TryAcquire(t.Context(), "key"); err == nil {
				t.Error("a lock that is held was granted after a restart")
			}
			insistOn(t, lease) // a client may take a while to find the server again
			got := <-next
			if got.err == nil {
				grow.took(got.Lease)
				insistOn(t, got.Lease)
			}
			insistOn(t, grow.insist(locker))
		}
	})
}

// A leader is lost and comes back: one holder at a time, and tokens grow.
func TestTokensGrowOverChangesOfTheLeader(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, 3)
	kinds := map[string]etcd.Options{"next": variants()["next"]}
	if extent.Thorough() {
		kinds = variants()
	}
	for name, options := range kinds {
		t.Run(name, func(t *testing.T) { leaders(t, server, options) })
	}
}

func leaders(t *testing.T, server *etcdtest.Etcd, options etcd.Options) {
	grow := &tokens{t: t}
	locker, _ := open(t, server, options, 20*time.Second)
	other, _ := open(t, server, options, 20*time.Second)
	for range often(2) {
		lease := grow.insist(locker)
		leader := server.Leader()
		server.Kill(leader)
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if _, err := other.Acquire(short, "key"); err == nil {
			t.Error("two hold the lock")
		}
		cancel()
		insistOn(t, lease)
		second := grow.insist(other) // by two members
		server.Again(leader)
		insistOn(t, second)
		insistOn(t, grow.insist(locker))
	}
}
