package spin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/spin"
)

func TestWaitReplicas(t *testing.T) {
	top := redistest.StartTopology(t, "replicas:2")
	nodes := top.Nodes(t)
	with := func(replicas int) *spin.Locker {
		options := spin.Defaults()
		options.WaitReplicas, options.WaitTimeout = replicas, 20*time.Millisecond
		return open(t, goredis.Config{Nodes: nodes, Prefix: "trial:", TTL: time.Minute}, options)
	}
	cycle := func(l *spin.Locker) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		lease, err := l.Acquire(ctx, "key")
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	if err := cycle(with(2)); err != nil {
		t.Fatalf("with both replicas there: %v", err)
	}
	top.Pause(2)
	if err := cycle(with(1)); err != nil {
		t.Errorf("with one of two replicas there, one asked for: %v", err)
	}
	if _, err := with(2).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("with one of two replicas there, two asked for: %v", err)
	}
	if n := nodes[0].Client.Exists(t.Context(), "trial:key").Val(); n != 0 {
		t.Error("the lock was not given back")
	}
	anyway := spin.Defaults()
	anyway.WaitReplicas, anyway.WaitTimeout, anyway.WaitAnyway = 2, 20*time.Millisecond, true
	if err := cycle(open(t, goredis.Config{Nodes: nodes, Prefix: "trial:", TTL: time.Minute}, anyway)); err != nil {
		t.Errorf("with one of two replicas there, two asked for and used anyway: %v", err)
	}
	top.Resume(2)
	if err := cycle(with(2)); err != nil {
		t.Errorf("with both replicas there again: %v", err)
	}
}
