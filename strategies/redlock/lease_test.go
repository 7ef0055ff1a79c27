package redlock_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/redlock"
)

func TestValidUntilIsCountedFromTheFirstSet(t *testing.T) {
	c := start(t, 3)
	// Redis counts TTLs in milliseconds, so the validity of the lease must not include the 700 µs.
	locker := c.open(goredis.Config{TTL: 10*time.Second + 700*time.Microsecond}, quickly(nil))
	before := time.Now()
	lease := acquire(t, locker, "key")
	after := time.Now()
	until := lease.(strategies.Timed).ValidUntil()
	if validity := 9898 * time.Millisecond; until.Before(before.Add(validity)) || until.After(after.Add(validity)) {
		t.Errorf("valid for %v to %v, want %v from a moment between", until.Sub(after), until.Sub(before), validity)
	}
	for i := range c.look {
		if ttl := c.look[i].PTTL(t.Context(), "key").Val(); time.Now().Add(ttl).Before(until) {
			t.Errorf("node %d forgets the lock %v before its lease ends", i, until.Sub(time.Now().Add(ttl)))
		}
	}
	release(t, lease)
}

// TestReleaseCountsTheQuorum gives the key to another owner on none, two, three or all of five nodes. Release must
// return ErrNotHeld if the lease has lost its quorum. It must never delete the other owner's keys.
func TestReleaseCountsTheQuorum(t *testing.T) {
	for _, test := range []struct {
		lost []int
		want error
	}{
		{nil, nil},
		{[]int{0, 1}, nil},
		{[]int{0, 1, 2}, strategies.ErrNotHeld},
		{[]int{0, 1, 2, 3, 4}, strategies.ErrNotHeld},
	} {
		c := start(t, 5)
		locker := c.open(goredis.Config{}, quickly(nil))
		lease := acquire(t, locker, "key")
		c.occupy("key", test.lost...)
		if err := lease.Release(t.Context()); !errors.Is(err, test.want) {
			t.Errorf("after losing %d nodes release returned %v, want %v", len(test.lost), err, test.want)
		}
		for i, token := range c.tokens("key", 0, 1, 2, 3, 4) {
			if lost := i < len(test.lost); lost && token != "a stranger" || !lost && token != "" {
				t.Errorf("after losing %d nodes, node %d has %q", len(test.lost), i, token)
			}
		}
	}
}

func TestExtendNeedsAQuorum(t *testing.T) {
	c := start(t, 5)
	locker := c.open(goredis.Config{TTL: 10 * time.Second}, quickly(nil))
	lease := acquire(t, locker, "key")
	extender, timed := lease.(strategies.Extender), lease.(strategies.Timed)

	c.occupy("key", 0, 1)
	before := time.Now()
	if err := extender.Extend(t.Context(), longTTL); err != nil {
		t.Fatalf("extend on three of five: %v", err)
	}
	validity := redlock.Validity(longTTL, 0, 0.01)
	if until := timed.ValidUntil(); until.Before(before.Add(validity)) || until.After(time.Now().Add(validity)) {
		t.Errorf("valid for %v, want %v", time.Until(until), validity)
	}
	for _, i := range []int{2, 3, 4} {
		if ttl := c.look[i].PTTL(t.Context(), "key").Val(); time.Now().Add(ttl).Before(timed.ValidUntil()) {
			t.Errorf("node %d keeps it for %v only", i, ttl)
		}
	}

	c.occupy("key", 2)
	until := timed.ValidUntil()
	if err := extender.Extend(t.Context(), 2*longTTL); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("extend on two of five returned %v, want ErrNotHeld", err)
	}
	if !timed.ValidUntil().Equal(until) {
		t.Errorf("a failed extend moved the end by %v", timed.ValidUntil().Sub(until))
	}
	if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("release on two of five returned %v, want ErrNotHeld", err)
	}
	c.assertNoKey("key", 3, 4)
}

// TestFailedShorteningCounts shortens a lease while two of three nodes are down. Extend must return an error.
// ValidUntil must still become earlier, because the third node has shortened its key.
func TestFailedShorteningCounts(t *testing.T) {
	c := start(t, 3)
	locker := c.open(goredis.Config{}, quickly(nil))
	lease := acquire(t, locker, "key")
	c.servers[0].Kill()
	c.servers[1].Kill()
	before := time.Now()
	if err := lease.(strategies.Extender).Extend(t.Context(), 5*time.Second); err == nil ||
		errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("extend without an answer from a majority returned %v", err)
	}
	if until := lease.(strategies.Timed).ValidUntil(); until.After(before.Add(5 * time.Second)) {
		t.Errorf("it counts on %v, node 2 on %v", until.Sub(before), c.look[2].PTTL(t.Context(), "key").Val())
	}
}

func countDials(t *testing.T, server *redistest.Server) (goredis.Node, *atomic.Int64) {
	dials := new(atomic.Int64)
	options := *server.Node(t).Options
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: &options}, dials
}

// TestUnansweredShorteningLimitsLaterExtends shortens a lease to 5 s while two of three nodes hang. These nodes may
// execute the shortening after a later extension. The later extension must therefore not promise more than 5 s.
func TestUnansweredShorteningLimitsLaterExtends(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	nodes := c.nodes()
	var dials [2]*atomic.Int64
	for i := range dials {
		nodes[i], dials[i] = countDials(t, c.servers[i])
	}
	locker := c.open(goredis.Config{Nodes: nodes}, quickly(func(o *redlock.Options) { o.NodeTimeout = hangs }))
	lease := acquire(t, locker, "key")
	extender, timed := lease.(strategies.Extender), lease.(strategies.Timed)
	before := [2]int64{dials[0].Load(), dials[1].Load()}
	c.servers[0].Pause()
	c.servers[1].Pause()
	if err := extender.Extend(t.Context(), 5*time.Second); err == nil {
		t.Error("extended without an answer from a majority")
	}
	extended := make(chan error, 1)
	go func() { extended <- extender.Extend(t.Context(), longTTL) }()
	poll.Until(t, "the later extension has begun on both: the first one's connections are in use", func() bool {
		return dials[0].Load() > before[0] && dials[1].Load() > before[1]
	})
	c.resume(0, 1)
	if err := <-extended; err != nil {
		t.Fatal(err)
	}
	if left := time.Until(timed.ValidUntil()); left > 5*time.Second || left < time.Second {
		t.Errorf("valid for %v, although a majority may still shorten it to 5s", left)
	}
	release(t, lease)
}

// One of three nodes does not reply to an extension that shortens the lease. A later extension must still make the
// lease as long as requested.
func TestHungMinorityDoesNotLimitLaterExtends(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	locker := c.open(goredis.Config{}, quickly(func(o *redlock.Options) { o.NodeTimeout = hangs }))
	lease := acquire(t, locker, "key")
	extender, timed := lease.(strategies.Extender), lease.(strategies.Timed)
	c.servers[0].Pause()
	if err := extender.Extend(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(timed.ValidUntil()); left > 5*time.Second {
		t.Errorf("extended by 5s it is valid for %v", left)
	}
	c.resume(0)
	if err := extender.Extend(t.Context(), longTTL); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(timed.ValidUntil()); left < longTTL/2 {
		t.Errorf("extended by %v it is valid for %v", longTTL, left)
	}
	release(t, lease)
}

func TestExtendBelowDriftIsRefused(t *testing.T) {
	c := start(t, 3)
	locker := c.open(goredis.Config{}, quickly(nil))
	lease := acquire(t, locker, "key")
	if err := lease.(strategies.Extender).Extend(t.Context(), 2*time.Millisecond); err == nil ||
		errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("extending by less than the drift returned %v", err)
	}
	release(t, lease)
}
