package rueidislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	_ "github.com/lockbench/lockbench/strategies/peers/rueidislock"
)

func TestConformance(t *testing.T) {
	for _, name := range []string{"rueidislock", "rueidislock:tuned=true"} {
		t.Run(name, func(t *testing.T) {
			variant := trial.Variant(t, name)
			locktest.Run(t, func(t *testing.T) locktest.Fixture {
				fixture := trial.Fixture(t, variant)
				fixture.Rounds = 4 // each may lose a waiter for two seconds
				return fixture
			}, variant.Info())
		})
	}
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	for variant, keys := range map[string]int{"rueidislock": 3, "rueidislock:tuned=true": 1} {
		p := trial.Start(t, server, variant, time.Minute)
		trial.Release(t, p.Acquire(t, "key")) // loads the scripts
		got := locktest.Calls(t, server.Client(t), func() { trial.Release(t, p.Acquire(t, "key")) })
		delete(got, "hello") // of the observer
		delete(got, "ping")  // of an idle connection
		// It holds the lock with a majority, and may be released before it has the rest.
		majority := keys/2 + 1
		want := map[string][2]int{"evalsha": {2 * majority, 2 * keys}, "get": {2 * majority, 2 * keys}, "set": {majority, keys}, "del": {majority, keys}}
		for command, n := range got {
			if n < want[command][0] || n > want[command][1] {
				t.Errorf("%s: an acquire and release ran %v, want %v", variant, got, want)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: an acquire and release ran %v, want %v", variant, got, want)
		}
	}
}

// The keys are those that are looked for after a run.
func TestKeysCarryThePrefix(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "rueidislock:tuned=true", time.Minute)
	lease := p.Acquire(t, "{key}")
	if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != "rueidislock:0:trial:{key}" {
		t.Errorf("its keys are %q", keys)
	}
	trial.Release(t, lease)
}

// A lease ends with its Release, not with the context of its Acquire.
func TestLeaseOutlivesItsAcquire(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "rueidislock", time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	lease, err := p.Locker.Acquire(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	lost := lease.(strategies.Watched).Lost()
	select {
	case <-lost:
		t.Error("the lease was lost with the context of its Acquire")
	case <-time.After(20 * time.Millisecond):
	}
	if n := server.Client(t).Exists(t.Context(), "rueidislock:0:trial:key").Val(); n != 1 {
		t.Error("the lock is free although it is held")
	}
	trial.Release(t, lease)
}

func TestTellsOfALostLease(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "rueidislock:tuned=true", time.Minute)
	lease := p.Acquire(t, "key")
	if err := server.Client(t).FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lease.(strategies.Watched).Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("nobody told the holder that its key was deleted")
	}
	if err := lease.Release(t.Context()); err != strategies.ErrNotHeld { //nolint:errorlint // exactly that
		t.Errorf("the release returned %v", err)
	}
}

func TestReportsALostServer(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "rueidislock", time.Minute)
	p.Acquire(t, "key")
	failed := make(chan error)
	go func() {
		_, err := p.Locker.Acquire(t.Context(), "key")
		failed <- err
	}()
	server.Kill()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("the lock was granted by a dead server")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a waiter waits on a dead server and is not told")
	}
}

// In a cluster it finds each node by itself.
func TestCluster(t *testing.T) {
	nodes := redistest.StartTopology(t, "cluster:3").Nodes(t)
	variant := trial.Variant(t, "rueidislock")
	locker, err := variant.Open(strategies.Config{Nodes: nodes, Prefix: "trial:", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locker.Close() }()
	for _, key := range []string{"{a}", "{b}", "{c}", "{d}"} {
		lease, err := locker.Acquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		trial.Release(t, lease)
	}
}
