package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// go-redis asks a cluster for its nodes without looking at a context. A caller whose context ends returns all the same.
func TestClusterThatStandsStill(t *testing.T) {
	t.Parallel()
	top := redistest.StartTopology(t, "cluster:3")
	client := open(t, with(t, top.Nodes(t)[0], func(o *redis.UniversalOptions) {
		o.ContextTimeoutEnabled = false
		o.ReadTimeout = 2 * time.Second
	}))
	for i := range 3 {
		top.Pause(i)
		defer top.Resume(i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	since := time.Now()
	err := client.Do(ctx, "get", "key").Err()
	if took := time.Since(since); took > time.Second {
		t.Errorf("it returned after %v", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) || indeterminate.MayHaveRun(err) {
		t.Errorf("it ended with %v", err)
	}
}

// The same holds of commands after Close, which go-redis sends.
func TestServerThatStandsStillAfterClose(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := open(t, with(t, server.Node(t), func(o *redis.UniversalOptions) {
		o.ContextTimeoutEnabled = false
		o.ReadTimeout = 2 * time.Second
	}))
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), "set", "key", "a").Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Eval(t.Context(), "return redis.call('GET', KEYS[1])", []string{"key"}).Text(); got != "a" {
		t.Fatalf("it got %q, %v", got, err)
	}
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	since := time.Now()
	err := client.Do(ctx, "get", "key").Err()
	if took := time.Since(since); took > time.Second {
		t.Errorf("it returned after %v", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !indeterminate.MayHaveRun(err) {
		t.Errorf("it ended with %v", err)
	}
}
