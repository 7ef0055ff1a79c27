package handoff

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// crowded is a process of which some wait in one place: waiter 0 has one alone, 1 to n the
// next. Another process has the lock.
type crowded struct {
	t      *testing.T
	server *redistest.Server
	redis  *redis.Client
	locker *Locker
	other  *Locker
	home   *home
	first  *Lease // of the other process
	served chan served
	cancel []context.CancelFunc
	trip   time.Duration // how far ahead of Redis's clock its tickets may be
}

type served struct {
	n     int
	lease *Lease
	err   error
}

const (
	crowdedKey = "crowd:key" + suffix
	patient    = 20 * time.Second
)

func newCrowd(t *testing.T, n int, ttl time.Duration) *crowded {
	t.Helper()
	server := redistest.Start(t)
	c := &crowded{t: t, server: server, redis: server.Client(t), served: make(chan served, 100)}
	c.locker, c.other = c.open(ttl), c.open(ttl)
	c.trip = time.Hour
	for range 5 {
		began := time.Now()
		c.release(c.acquireKey(c.locker, "another"))
		c.trip = min(c.trip, time.Since(began))
	}
	c.first = c.acquire(c.other)
	c.home, _, _ = c.locker.at("key")
	c.join(0)
	c.eventually("the first is queued", func() bool { return c.redis.LLen(t.Context(), crowdedKey).Val() == 2 })
	c.rush()
	for k := range n {
		c.join(k + 1)
		c.eventually("another has joined", func() bool { return c.seats() == k+1 })
	}
	return c
}

func (c *crowded) open(ttl time.Duration) *Locker {
	locker, err := New(strategies.Config{Nodes: []strategies.Node{c.server.Node(c.t)}, Prefix: "crowd:", TTL: ttl}, Options{Linger: time.Minute})
	if err == nil {
		err = locker.Prepare(c.t.Context(), nil)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = locker.Close() })
	return locker
}

func (c *crowded) acquire(l *Locker) *Lease { c.t.Helper(); return c.acquireKey(l, "key") }

func (c *crowded) acquireKey(l *Locker, key string) *Lease {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		c.t.Fatal(err)
	}
	return lease.(*Lease)
}

// rush has the process be in one.
func (c *crowded) rush() {
	c.home.mu.Lock()
	defer c.home.mu.Unlock()
	l := c.home.locks[crowdedKey]
	l.turns, l.turn, l.party = rush, time.Now(), crowd
}

// join has waiter n ask.
func (c *crowded) join(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	c.t.Cleanup(cancel)
	c.cancel = append(c.cancel, cancel)
	go func() {
		lease, err := c.locker.Acquire(ctx, "key")
		held, _ := lease.(*Lease)
		c.served <- served{n, held, err}
	}()
}

// seats is how many wait in the place that is open.
func (c *crowded) seats() int {
	c.home.mu.Lock()
	defer c.home.mu.Unlock()
	if l := c.home.locks[crowdedKey]; l != nil && l.open != nil {
		return len(l.open.seats)
	}
	return 0
}

// next must be waiter n, with a later token than the lease before.
func (c *crowded) next(n int, before *Lease) *Lease {
	c.t.Helper()
	select {
	case s := <-c.served:
		if s.n != n || s.err != nil {
			c.t.Fatalf("waiter %d got: %v, when it was waiter %d's turn", s.n, s.err, n)
		}
		if s.lease.FencingToken() <= before.FencingToken() {
			c.t.Errorf("token %d came after %d", s.lease.FencingToken(), before.FencingToken())
		}
		return s.lease
	case <-time.After(patient):
		c.t.Fatalf("waiter %d is not served: %q", n, c.redis.LRange(context.Background(), crowdedKey, 0, 5).Val())
		return nil
	}
}

func (c *crowded) release(held *Lease) {
	c.t.Helper()
	if err := held.Release(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// rest must be those waiters, in that order; then the lock is free and nobody queued.
func (c *crowded) rest(held *Lease, waiters ...int) {
	c.t.Helper()
	for _, n := range waiters {
		c.release(held)
		held = c.next(n, held)
	}
	c.release(held)
	c.eventually("nobody is queued, and nothing kept", func() bool {
		c.home.mu.Lock()
		defer c.home.mu.Unlock()
		return c.redis.LLen(context.Background(), crowdedKey).Val() <= 1 && len(c.home.places)+len(c.home.locks)+len(c.home.debts) == 0
	})
	c.release(c.acquire(c.other))
}

// gone must be waiter n, who has given up.
func (c *crowded) gone(n int) {
	c.t.Helper()
	if s := <-c.served; s.n != n || !errors.Is(s.err, context.Canceled) {
		c.t.Fatalf("waiter %d got: %v, when waiter %d was cancelled", s.n, s.err, n)
	}
}

func (c *crowded) eventually(what string, happened func() bool) {
	c.t.Helper()
	for began := time.Now(); !happened(); time.Sleep(time.Millisecond) {
		if time.Since(began) > patient {
			c.t.Fatalf("never: %s", what)
		}
	}
}
