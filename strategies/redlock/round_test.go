package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/redlock"
)

func TestUncontendedCost(t *testing.T) {
	const turns = 10
	for _, mode := range []string{redlock.Parallel, redlock.Sequential} {
		t.Run(mode, func(t *testing.T) {
			c := start(t, 5)
			probe := new(strategies.Probe)
			locker := c.open(goredis.Config{Probe: probe}, quickly(func(o *redlock.Options) { o.Mode = mode }))
			release(t, acquire(t, locker, "warm")) // opens the connections
			for i := range c.look {
				ran := locktest.Calls(t, c.look[i], func() {
					for range turns {
						release(t, acquire(t, locker, "key"))
					}
				})
				// The release script calls GET and DEL.
				want := map[string]int{"set": turns, "evalsha": turns, "get": turns, "del": turns}
				if diff := cmp.Diff(want, ran); diff != "" {
					t.Errorf("node %d ran (-want +got):\n%s", i, diff)
				}
			}
			if got, want := probe.Counts(), (strategies.ProbeCounts{Attempts: 5*turns + 1}); got != want {
				t.Errorf("probe counted %+v, want %+v", got, want)
			}
		})
	}
}

func TestFailedRoundLeavesNothing(t *testing.T) {
	for _, test := range []struct{ mode, release string }{
		{redlock.Parallel, redlock.Quick}, {redlock.Sequential, redlock.Quick}, {redlock.Parallel, redlock.Never},
	} {
		t.Run(test.mode+" "+test.release, func(t *testing.T) {
			t.Parallel()
			c := start(t, 5)
			probe := new(strategies.Probe)
			locker := c.open(goredis.Config{Probe: probe},
				quickly(func(o *redlock.Options) { o.Mode, o.Release = test.mode, test.release }))
			c.occupy("key", 1, 2, 3)
			if _, err := locker.TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
				t.Errorf("try-lock returned %v, want ErrHeld", err)
			}
			c.assertNoKey("key", 0, 4)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error)
			go func() { _, err := locker.Acquire(ctx, "key"); ended <- err }()
			poll.Until(t, "some rounds", func() bool { return probe.Counts().Attempts >= 4 })
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("acquire returned %v, want Canceled", err)
			}
			c.waitUntilNoKey("key", 0, 4)
			for i, token := range c.tokens("key", 1, 2, 3) {
				if token != "a stranger" {
					t.Errorf("node %d lost the stranger's token to %q", i+1, token)
				}
			}
			// Two rounds did not follow a wake-up: that of TryAcquire, and the first of Acquire.
			if got := probe.Counts(); got.Useful != 0 || got.Attempts < 3 || got.Futile != got.Attempts-2 {
				t.Errorf("probe counted %+v", got)
			}
		})
	}
}

// TestLostRoundWaitsForTheRest makes one node grant the lock after the four others have refused it. When TryAcquire
// returns, this node must be free again.
func TestLostRoundWaitsForTheRest(t *testing.T) {
	t.Parallel()
	c := start(t, 5)
	locker := c.open(goredis.Config{}, quickly(nil))
	release(t, acquire(t, locker, "key"))
	c.occupy("key", 1, 2, 3, 4)
	c.assertNoKey("key", 0) // and the connection for looking is open
	c.servers[0].Pause()
	resumed := time.AfterFunc(50*time.Millisecond, c.servers[0].Resume)
	defer resumed.Stop()
	if _, err := locker.TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("try-lock returned %v, want ErrHeld", err)
	}
	c.assertNoKey("key", 0)
}

func TestKeptNodesBlockUntilTheAcquireEnds(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	locker := c.open(goredis.Config{}, quickly(func(o *redlock.Options) { o.Release = redlock.Never }))
	c.occupy("key", 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := locker.Acquire(ctx, "key"); ended <- err }()
	poll.Until(t, "a failed round keeps node 2", func() bool { return c.tokens("key", 2)[0] != "" })
	first := c.tokens("key", 2)[0]
	time.Sleep(30 * time.Millisecond) // some more rounds
	if again := c.tokens("key", 2)[0]; again != first {
		t.Errorf("%q became %q", first, again)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("acquire returned %v, want Canceled", err)
	}
	c.assertNoKey("key", 2)
}

// TestTooLittleValidity makes one of three nodes hang. The others grant the lock, but after the node timeout too little
// validity is left. Acquire and TryAcquire must fail and leave no key.
func TestTooLittleValidity(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	probe := new(strategies.Probe)
	locker := c.open(goredis.Config{TTL: 4 * time.Second, Probe: probe}, quickly(func(o *redlock.Options) {
		o.NodeTimeout = time.Second
		o.MinValidity = 3500 * time.Millisecond // 4000 − 1000 − (40 + 2) = 2958
	}))
	release(t, acquire(t, locker, "key"))
	c.servers[2].Pause()
	defer c.servers[2].Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := locker.Acquire(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire returned %v, want DeadlineExceeded", err)
	}
	c.assertNoKey("key", 0, 1)
	if _, err := locker.TryAcquire(t.Context(), "key"); err == nil || errors.Is(err, strategies.ErrHeld) ||
		errors.Is(err, strategies.ErrNoQuorum) {
		t.Errorf("try-lock returned %v, want that it came too late", err)
	}
	c.assertNoKey("key", 0, 1)
}
