package rueidislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/peers/rueidislock"
)

func init() { strategies.RegisterStrategy(rueidislock.Strategy()) }

// rueidislock changes only with go.mod, so only make others runs the conformance suite on it.
func TestConformance(t *testing.T) {
	if !extent.More() {
		t.Skip("slow: make others runs it")
	}
	for _, name := range []string{"rueidislock", "rueidislock:tuned=true"} {
		t.Run(name, func(t *testing.T) {
			variant := trial.Variant(t, name)
			fixture := trial.Fixture(t, variant)
			fixture.Rounds = 4 // each may lose a waiter for two seconds
			locktest.Run(t, func(*testing.T) locktest.Fixture { return fixture }, variant.Info())
		})
	}
}

// A lease of rueidislock must remain valid after the context of its Acquire has ended. When its key is deleted, Lost
// must be closed, and Release must return ErrNotHeld.
func TestLeases(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "rueidislock:tuned=true", time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	lease, err := p.Locker.Acquire(ctx, "{key}")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	lost, outside := lease.(strategies.Watched).Lost(), server.Client(t)
	select {
	case <-lost:
		t.Error("the lease was lost with the context of its Acquire")
	case <-time.After(20 * time.Millisecond):
	}
	if keys := outside.Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != "rueidislock:0:trial:{key}" {
		t.Errorf("its keys are %q", keys) // those that are looked for after a run
	}
	if err := outside.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lost:
	case <-time.After(20 * time.Second):
		t.Fatal("the loss was not reported although the key was deleted")
	}
	if err := lease.Release(t.Context()); err != strategies.ErrNotHeld {
		t.Errorf("the release returned %v", err)
	}
}
