package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/redlock"
)

// A node hangs, and a lease is requested with a longer or shorter TTL than the Locker's own. The node timeout must be
// limited to a quarter of the requested TTL. If it depended on the Locker's TTL, waiting for the node could use up the
// short lease.
func TestNodeTimeoutFollowsTheTTL(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{redlock.Parallel, redlock.Sequential} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			const short, timeout = 200 * time.Millisecond, 800 * time.Millisecond
			c := start(t, 3)
			options := quickly(func(o *redlock.Options) { o.Mode, o.NodeTimeout = mode, timeout })
			long, brief := c.open(goredis.Config{}, options), c.open(goredis.Config{TTL: short}, options)
			release(t, acquire(t, long, "warm"))
			c.servers[0].Pause()
			defer c.resume(0)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			lease, err := brief.AcquireFor(ctx, "long", longTTL)
			if err != nil {
				t.Fatalf("acquire for %v: %v", longTTL, err)
			}
			if took := time.Since(began); took < timeout {
				t.Errorf("a lease of %v waited %v for a node that hangs, want %v", longTTL, took, timeout)
			}
			if left := time.Until(lease.(strategies.Timed).ValidUntil()); left < longTTL/2 {
				t.Errorf("of %v it is valid for %v", longTTL, left)
			}
			if lease, err = long.AcquireFor(ctx, "short", short); err != nil {
				t.Errorf("a lease of %v cannot be had while a node hangs: %v", short, err)
			} else if left := time.Until(lease.(strategies.Timed).ValidUntil()); left > short*3/4 {
				t.Errorf("of %v it is valid for %v, although a node hung", short, left)
			}
		})
	}
}
