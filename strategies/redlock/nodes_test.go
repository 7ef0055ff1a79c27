package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/redlock"
)

// TestTwoOfFiveHang acquires the lock while two nodes accept connections but never reply. An acquire must take at least
// one node timeout in parallel mode and two in sequential mode, and not ten times as long.
func TestTwoOfFiveHang(t *testing.T) {
	t.Parallel()
	for mode, timeouts := range map[string]time.Duration{redlock.Parallel: 1, redlock.Sequential: 2} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := start(t, 5)
			options := quickly(func(o *redlock.Options) { o.Mode, o.NodeTimeout = mode, hangs })
			locker := c.open(goredis.Config{}, options)
			release(t, acquire(t, locker, "key"))
			c.servers[1].Pause()
			c.servers[4].Pause()
			least := timeouts * options.NodeTimeout
			var times []time.Duration
			for range 5 {
				began := time.Now()
				lease := acquire(t, locker, "key")
				got := time.Now()
				release(t, lease)
				times = append(times, time.Since(began))
				if got.Sub(began) < least {
					t.Errorf("it took %v: the node timeouts are %v", got.Sub(began), least)
				}
				// The validity counts from the beginning of the round, so the node timeouts shorten it.
				validity := redlock.Validity(longTTL, 0, options.Drift)
				until := lease.(strategies.Timed).ValidUntil()
				if until.Before(began.Add(validity)) || until.After(got.Add(validity-least)) {
					t.Errorf("got after %v, it is valid for %v from the call on", got.Sub(began), until.Sub(began))
				}
			}
			// The fastest call counts: if the lock waited for another timeout, such as the client's, every call would take
			// longer.
			if fastest := slices.Min(times); fastest > 10*least {
				t.Errorf("acquire and release took %v at least: the node timeouts are %v", fastest, least)
			}
			c.waitUntilNoKey("key", 0, 2, 3)
			c.nothingLeft(locker, 1, 4)
		})
	}
}

// TestThreeOfFiveDown stops two nodes, after which an acquire must still take one round. It then stops a third, after
// which an acquire must return ErrNoQuorum and leave no key.
func TestThreeOfFiveDown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode string
		hung bool
		fail func(*redistest.Server)
	}{
		{redlock.Parallel, false, (*redistest.Server).Kill},
		{redlock.Sequential, false, (*redistest.Server).Kill},
		{redlock.Parallel, true, (*redistest.Server).Pause},
	} {
		t.Run(fmt.Sprintf("%s hung=%v", test.mode, test.hung), func(t *testing.T) {
			t.Parallel()
			c := start(t, 5)
			probe, nothingAt := new(strategies.Probe), c.assertNoKey
			locker := c.open(goredis.Config{Probe: probe}, quickly(func(o *redlock.Options) {
				if o.Mode = test.mode; test.hung {
					o.NodeTimeout, nothingAt = hangs, c.waitUntilNoKey
				}
			}))
			release(t, acquire(t, locker, "key"))
			test.fail(c.servers[0])
			test.fail(c.servers[2])
			if !test.hung {
				c.open(goredis.Config{}, quickly(nil)) // Prepare must not mind
				release(t, acquire(t, locker, "key"))
				c.assertNoKey("key", 1, 3, 4)
				if got := probe.Counts().Attempts; got != 2 {
					t.Errorf("%d rounds for 2 acquisitions", got)
				}
			}
			test.fail(c.servers[3])
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			before := probe.Counts().Attempts
			if _, err := locker.Acquire(ctx, "key"); !errors.Is(err, strategies.ErrNoQuorum) {
				t.Errorf("acquire returned %v, want ErrNoQuorum", err)
			}
			nothingAt("key", 1, 4)
			rounds, giveUp := probe.Counts().Attempts-before, int64(redlock.Defaults().GiveUp)
			if rounds < giveUp || !test.hung && rounds > giveUp {
				t.Errorf("the acquire ended after %d rounds, want %d, or more if the nodes are silent", rounds, giveUp)
			}
			if _, err := locker.TryAcquire(ctx, "key"); !errors.Is(err, strategies.ErrNoQuorum) {
				t.Errorf("try-lock returned %v, want ErrNoQuorum", err)
			}
			nothingAt("key", 1, 4)
			if test.hung {
				c.nothingLeft(locker, 0, 2, 3)
			}
		})
	}
}

func TestNodesComeBack(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	locker := c.open(goredis.Config{}, quickly(func(o *redlock.Options) { o.GiveUp = 1e6 }))
	release(t, acquire(t, locker, "key"))
	c.servers[0].Kill()
	c.servers[1].Kill()
	got := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		lease, err := locker.Acquire(ctx, "key")
		if err == nil {
			err = lease.Release(ctx)
		}
		got <- err
	}()
	time.Sleep(20 * time.Millisecond)
	c.servers[1].Restart(t)
	if err := <-got; err != nil {
		t.Errorf("with a majority back: %v", err)
	}
}

// TestLateSuccessIsUndone makes one node execute its SET only after the other nodes have granted the lock. The lock
// must delete the key on this node, and keep the lease on the others.
func TestLateSuccessIsUndone(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]time.Duration{
		"while its connection waits":    0,
		"when its connection is closed": 1300 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, 5)
			locker := c.open(goredis.Config{}, quickly(withLongNodeTimeout))
			release(t, acquire(t, locker, "warm"))
			var lease strategies.Lease
			ran := locktest.Calls(t, c.look[2], func() {
				c.servers[2].Pause()
				lease = acquire(t, locker, "key")
				time.Sleep(hang)
				c.servers[2].Resume()
				if err := locker.Close(); err != nil { // waits for what is under way
					t.Error(err)
				}
			})
			if ran["set"] != 1 || ran["del"] != 1 {
				t.Errorf("%v ran, want the late SET and its undoing", ran)
			}
			c.assertNoKey("key", 2)
			for i, token := range c.tokens("key", 0, 1, 3, 4) {
				if token == "" {
					t.Errorf("the lease was lost on node %d of the 4 that granted it", i)
				}
			}
			release(t, lease) // also after Close
			c.assertNoKey("key", 0, 1, 2, 3, 4)
		})
	}
}

// TestUnansweredReleaseIsRepeated releases the lock while one node hangs. The release must be repeated on this node
// after it resumes.
func TestUnansweredReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	locker := c.open(goredis.Config{}, quickly(withLongNodeTimeout))
	lease := acquire(t, locker, "key")
	c.servers[0].Pause()
	release(t, lease)
	c.assertNoKey("key", 1, 2)
	c.servers[0].Resume()
	poll.Until(t, "the release on the node that hung", func() bool { return c.tokens("key", 0)[0] == "" })

	lease = acquire(t, locker, "key")
	c.servers[0].Kill()
	c.servers[1].Kill()
	if err := lease.Release(t.Context()); err == nil || errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release that two of three nodes did not answer returned %v", err)
	}
	c.assertNoKey("key", 2)
}

// TestUnsentReleaseIsRepeated releases the lock while the only connection to one node is in use. The release must be
// sent to this node once the connection is free.
func TestUnsentReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	nodes := c.nodes()
	client := redis.NewClient(&redis.Options{Addr: c.servers[0].Addr, PoolSize: 1})
	t.Cleanup(func() { _ = client.Close() })
	nodes[0].Client = client
	locker := c.open(goredis.Config{Nodes: nodes}, quickly(withLongNodeTimeout))
	lease := acquire(t, locker, "key")
	taken := client.Conn()
	if err := taken.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	release(t, lease)
	c.assertNoKey("key", 1, 2)
	if c.tokens("key", 0)[0] == "" {
		t.Error("node 0 was freed without a connection")
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the release on node 0", func() bool { return c.tokens("key", 0)[0] == "" })
}

// TestClientsThatIgnoreDeadlines uses clients that ignore the deadlines of contexts and have a read timeout of 8 s.
// While one node hangs, three acquisitions together must take less than 8 s.
func TestClientsThatIgnoreDeadlines(t *testing.T) {
	t.Parallel()
	const readTimeout = 8 * time.Second
	c := start(t, 3)
	nodes := c.nodes()
	for i, node := range nodes {
		options := *node.Options
		options.ContextTimeoutEnabled, options.ReadTimeout = false, readTimeout
		client := redis.NewUniversalClient(&options)
		t.Cleanup(func() { _ = client.Close() })
		nodes[i].Client = client
	}
	locker := c.open(goredis.Config{Nodes: nodes}, quickly(impatiently))
	release(t, acquire(t, locker, "key"))
	c.servers[1].Pause()
	began := time.Now()
	for range 3 {
		release(t, acquire(t, locker, "key"))
	}
	if took := time.Since(began); took >= readTimeout {
		t.Errorf("it took %v: it waited for the client's timeout", took)
	}
	c.nothingLeft(locker, 1)
}

func TestCancelledWhileNodesHang(t *testing.T) {
	t.Parallel()
	c := start(t, 5)
	holder, locker := c.open(goredis.Config{}, quickly(nil)), c.open(goredis.Config{}, quickly(impatiently))
	release(t, acquire(t, locker, "key"))
	lease := acquire(t, holder, "key")
	held := c.tokens("key", 0, 1, 2)
	c.servers[3].Pause()
	c.servers[4].Pause()
	for wait := range 8 { // at any moment of a round
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(wait*15)*time.Millisecond, cancel)
		began := time.Now()
		if _, err := locker.Acquire(ctx, "key"); !errors.Is(err, context.Canceled) {
			t.Errorf("acquire returned %v, want Canceled", err)
		}
		if took := time.Since(began); took > longTTL/4 {
			t.Errorf("it took %v to return", took)
		}
		for i, token := range c.tokens("key", 0, 1, 2) {
			if token != held[i] {
				t.Errorf("node %d has %q, want the holder's", i, token)
			}
		}
	}
	release(t, lease)
	c.nothingLeft(locker, 3, 4)
}
