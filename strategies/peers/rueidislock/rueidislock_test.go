package rueidislock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/peers/rueidislock"
)

func init() { strategies.RegisterStrategy(rueidislock.Strategy()) }

func TestConformance(t *testing.T) {
	for _, name := range extent.Chosen([]string{"rueidislock", "rueidislock:tuned=true"}) {
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
	for variant, keys := range map[string]int{"rueidislock": 3, "rueidislock:tuned=true": 1} {
		trial.Calm(t, func(int) string { return uncontended(t, variant, keys) })
	}
}

func uncontended(t *testing.T, variant string, keys int) (spoilt string) {
	const limit = 20 * time.Millisecond // of a try: then it begins anew
	server := redistest.Start(t)
	p := trial.Start(t, server, variant, time.Minute)
	trial.Release(t, p.Acquire(t, "another")) // loads the scripts; a late message of its release means another
	var took time.Duration
	got := locktest.Calls(t, server.Client(t), func() {
		began := time.Now()
		trial.Release(t, p.Acquire(t, "key"))
		took = time.Since(began)
	})
	delete(got, "hello") // of the observer
	delete(got, "ping")  // of an idle connection
	// It holds the lock with a majority, and may be released before it has the rest.
	majority := keys/2 + 1
	want := map[string][2]int{"evalsha": {2 * majority, 2 * keys}, "get": {2 * majority, 2 * keys}, "set": {majority, keys}, "del": {majority, keys}}
	wrong := len(got) != len(want)
	for command, n := range got {
		wrong = wrong || n < want[command][0] || n > want[command][1]
	}
	said := fmt.Sprintf("%s: an acquire and release ran %v in %v, want %v", variant, got, took, want)
	if wrong && (took > limit || got["pexpireat"] > 0) { // it renews at a late message, too
		return said
	}
	if wrong {
		t.Error(said)
	}
	return ""
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
	if n := server.Client(t).DBSize(t.Context()).Val(); n < 2 { // a majority of its keys
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

// A lock is granted with two of its three keys. The third may come only when Close has
// seen what is to be released later.
func TestALateKeyIsReleasedAfterClose(t *testing.T) {
	const late = "rueidislock:2:trial:key"
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "rueidislock", time.Minute)
	lease := p.Acquire(t, "key")
	poll.Until(t, "all keys are there", func() bool { return outside.DBSize(t.Context()).Val() == 3 })
	value := outside.GetDel(t.Context(), late).Val()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := outside.Set(t.Context(), late, value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	trial.Release(t, lease)
	if keys := outside.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
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
	locker, err := goredis.Open(variant, goredis.Config{Nodes: nodes, Prefix: "trial:", TTL: time.Minute})
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
