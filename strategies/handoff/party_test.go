package handoff

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Those of a place get the lock in turn, for one grant and one release.
func TestParty(t *testing.T) {
	c := newCrowd(t, 5, time.Hour)
	c.release(c.first)
	held := c.next(0, c.first)
	calls := locktest.Calls(t, c.redis, func() {
		for n := 1; n <= 5; n++ {
			before := held
			c.release(before)
			held = c.next(n, before)
			for _, do := range []func(context.Context) error{before.Release, func(ctx context.Context) error { return before.Extend(ctx, time.Hour) }} {
				if err := do(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
					t.Errorf("with a lease that was passed on it returned %v", err)
				}
			}
		}
	})
	if calls["evalsha"] > 3 || calls["rpushx"] != 1 { // the release before, and one that looks, as nobody else waits
		t.Errorf("their place was queued by %d RPUSHX, and got the lock by %d scripts", calls["rpushx"], calls["evalsha"])
	}
	if first, n := held.Fences(); first != held.FencingToken() || n != 1 {
		t.Errorf("a turn has %d tokens from %d, want one, %d", n, first, held.FencingToken())
	}
	c.rest(held)
}

// Whoever gives up is passed over, wherever it waits; if all do, nothing is left.
func TestPartyWithoutSome(t *testing.T) {
	c := newCrowd(t, 6, time.Hour)
	c.cancel[1]() // the place's first
	c.gone(1)
	c.cancel[4]()
	c.gone(4)
	c.release(c.first)
	c.release(c.next(0, c.first))
	held := c.next(2, c.first)
	c.cancel[5]() // of the party
	c.gone(5)
	c.rest(held, 3, 6)

	c = newCrowd(t, 2, time.Hour)
	c.cancel[1]()
	c.cancel[2]()
	<-c.served
	<-c.served
	c.release(c.first)
	c.rest(c.next(0, c.first))

	c = newCrowd(t, 2, time.Hour)
	c.release(c.first)
	c.release(c.next(0, c.first))
	held = c.next(1, c.first)
	c.cancel[2]() // all of the party
	c.gone(2)
	c.rest(held)
}

// Who is given a lease and has given up at the same time passes it on.
func TestPartyIsNotHeldUpByALease(t *testing.T) {
	c := newCrowd(t, 3, time.Hour)
	s := &seat{name: crowdedKey, block: 1, told: make(chan outcome, 1)}
	c.home.mu.Lock()
	p := c.home.locks[crowdedKey].open
	s.place, p.lock.waiting = p, p.lock.waiting+1
	p.seats = append([]*seat{s}, p.seats...) // nobody listens to it
	c.home.mu.Unlock()
	c.release(c.first)
	c.release(c.next(0, c.first))
	c.eventually("it is told", func() bool { return len(s.told) == 1 })
	c.home.abandon(t.Context(), s)
	c.rest(c.next(1, c.first), 2, 3)
}

// Whose holder does not release gets the lock when the lease is over.
func TestPartyOutlivesItsHolder(t *testing.T) {
	const ttl = 500 * time.Millisecond
	c := newCrowd(t, 3, time.Hour)
	c.release(c.first)
	c.release(c.next(0, c.first))
	hung := c.next(1, c.first)
	if err := hung.Extend(t.Context(), ttl); err != nil {
		t.Fatal(err)
	}
	held := c.next(2, hung)
	if !time.Now().After(hung.ValidUntil()) {
		t.Error("it went on while the lease was valid")
	}
	if err := hung.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the release of a lease that was over returned %v", err)
	}
	_ = held.Extend(t.Context(), time.Hour)
	c.rest(held, 3)
}

// A lease that is not fit to be passed is released, and its party next all the same:
// with little of it left, or more than a TTL, or on another connection than it came.
func TestPartyGoesBack(t *testing.T) {
	for name, spoil := range map[string]func(*crowded, *Lease){
		"short": func(c *crowded, held *Lease) { held.valid(time.Now().Add(c.home.config.TTL / 3)) },
		"long":  func(c *crowded, held *Lease) { _ = held.Extend(c.t.Context(), 2*time.Hour) },
		"broken": func(c *crowded, held *Lease) {
			c.redis.ClientKillByFilter(c.t.Context(), "TYPE", "pubsub")
			c.eventually("another connection", func() bool { return !held.Unbroken() && c.locker.Prepare(c.t.Context(), nil) == nil })
		},
		"requeued": func(c *crowded, held *Lease) {
			turn, err := held.Requeue(c.t.Context(), 1)
			if err != nil {
				c.t.Fatal(err)
			}
			go func() {
				lease, err := turn.Wait(context.Background())
				c.served <- served{5, lease, err}
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, 4, time.Hour)
			c.release(c.first)
			c.release(c.next(0, c.first))
			held := c.next(1, c.first)
			time.Sleep(c.trip + 5*time.Millisecond) // else the other's ticket might be the earlier
			later := make(chan *Lease, 1)
			go func() {
				lease, err := c.other.Acquire(context.Background(), "key")
				if err != nil {
					t.Error(err)
				}
				later <- lease.(*Lease)
			}()
			c.eventually("another process is queued", func() bool { return c.redis.LLen(t.Context(), crowdedKey).Val() == 2 })
			spoil(c, held)
			if name != "requeued" {
				c.release(held)
			}
			next := c.next(2, held)
			if next.FencingToken() < held.FencingToken()+crowd-1 {
				t.Errorf("it has the token %d of the same lease, after %d", next.FencingToken(), held.FencingToken())
			}
			c.release(next)
			held = c.next(3, next)
			c.release(held)
			c.release(c.next(4, held))
			held = <-later
			if name == "requeued" {
				c.rest(held, 5)
			} else {
				c.rest(held)
			}
		})
	}
}

// A grant that comes too late is given back; all of the place wait on.
func TestPartyOfALateGrant(t *testing.T) {
	c := newCrowd(t, 3, time.Hour)
	c.home.mu.Lock()
	p := c.home.locks[crowdedKey].open
	c.home.mu.Unlock()
	c.home.give(outcome{grant: grant{id: p.id, lock: crowdedKey, fence: 1, block: crowd}, until: time.Now()})
	c.eventually("the first asks again", func() bool {
		c.home.mu.Lock()
		defer c.home.mu.Unlock()
		return len(c.home.places) == 3
	})
	c.release(c.first)
	c.rest(c.next(0, c.first), 2, 3, 1)
}

// Redis restarts without its data while a party goes on: its rest queue again, and
// tokens grow.
func TestPartyOfALostLock(t *testing.T) {
	c := newCrowd(t, 3, time.Hour)
	c.release(c.first)
	c.release(c.next(0, c.first))
	held := c.next(1, c.first)
	c.server.Kill()
	c.server.Restart(t)
	c.eventually("a connection", func() bool { return !held.Unbroken() })
	if err := held.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the release of a forgotten lease returned %v", err)
	}
	c.rest(c.next(2, held), 3)
}

// A party that goes back while there is no connection has the keeper look after it.
func TestPartyWakesTheKeeper(t *testing.T) {
	c := newCrowd(t, 3, time.Hour)
	c.release(c.first)
	c.release(c.next(0, c.first))
	held := c.next(1, c.first)
	h := c.home
	h.mu.Lock()
	connection := h.connection
	h.connection, h.awake = 0, false
	held.party.rejoin()
	if !h.awake {
		t.Error("the keeper sleeps on")
	}
	h.connection, h.awake = connection, false
	h.resume(time.Now(), func(p *place) bool { return p.connection == asking })
	if !h.awake {
		t.Error("the keeper sleeps on, though somebody is asked for")
	}
	h.mu.Unlock()
	h.line.Flush()
	c.eventually("they are queued", func() bool { return c.redis.LLen(t.Context(), crowdedKey).Val() == 2 })
	c.rest(held, 2, 3)
}

// A lease that is known to be lost is not passed on.
func TestPartyOfALeaseThatIsLost(t *testing.T) {
	c := newCrowd(t, 3, time.Hour)
	c.release(c.first)
	c.release(c.next(0, c.first))
	held := c.next(1, c.first)
	if err := c.redis.Del(t.Context(), crowdedKey).Err(); err != nil {
		t.Fatal(err)
	}
	if err := held.Extend(t.Context(), time.Hour); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the extension of a lease that is lost returned %v", err)
	}
	if err := held.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("its release then returned %v", err)
	}
	c.rest(c.next(2, held), 3)
}

// Who comes after somebody with a place of its own is not served before.
func TestPartyKeepsTheOrder(t *testing.T) {
	c := newCrowd(t, 2, time.Hour)
	go func() {
		lease, err := c.locker.AcquireBlock(context.Background(), "key", 2)
		c.served <- served{3, lease, err}
	}()
	c.eventually("it has a place", func() bool { return c.seats() == 0 })
	c.join(4)
	c.eventually("the next has one too", func() bool { return c.seats() == 1 })
	c.release(c.first)
	c.rest(c.next(0, c.first), 1, 2, 3, 4)
}

// While Redis is out of reach they are told, as those in places of their own are.
func TestPartyWithoutRedis(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 3, time.Hour)
	c.release(c.first)
	c.release(c.next(0, c.first))
	c.next(1, c.first)
	c.join(4) // in a place, beside the party
	c.server.Kill()
	for range 3 {
		if s := <-c.served; s.err == nil || errors.Is(s.err, context.DeadlineExceeded) {
			t.Errorf("waiter %d got: %v", s.n, s.err)
		}
	}
}

// A place is joined for no longer than a request may linger, by no more than it has
// tokens for, and not at all where nothing lingers.
func TestPlacesClose(t *testing.T) {
	for name, shut := range map[string]func(h *home, p *place) (again func()){
		"queued long ago": func(h *home, p *place) func() {
			p.queued = time.Now().Add(-2 * h.linger)
			return func() {}
		},
		"full": func(_ *home, p *place) func() {
			seats := p.seats
			p.seats = append(seats, make([]*seat, crowd-len(seats))...)
			return func() { p.seats = seats }
		},
		"nothing lingers": func(h *home, _ *place) func() {
			linger := h.linger
			h.linger = 0
			return func() { h.linger = linger }
		},
		"no rush": func(_ *home, p *place) func() {
			p.lock.turn = time.Time{}
			return func() {}
		},
		"not answered for long": func(h *home, p *place) func() {
			p.asked = time.Now().Add(-3 * h.linger)
			return func() {}
		},
		"not queued any more": func(h *home, p *place) func() {
			delete(h.places, p.id)
			return func() { h.places[p.id] = p }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, 2, time.Hour)
			h := c.home
			h.mu.Lock()
			p := h.locks[crowdedKey].open
			if !h.open(p, time.Now()) {
				t.Error("it is not open")
			}
			again := shut(h, p)
			h.mu.Unlock()
			c.join(3)
			c.eventually("it waits", func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				return p.lock.waiting == 4
			})
			h.mu.Lock()
			again()
			if n := len(p.seats); n != 2 {
				t.Errorf("%d wait in the place, want two", n)
			}
			h.mu.Unlock()
			c.release(c.first)
			c.rest(c.next(0, c.first), 1, 2, 3)
		})
	}
}

// It is known when a place is queued.
func TestPlaceIsQueued(t *testing.T) {
	c := newCrowd(t, 1, time.Hour)
	c.home.push() // what lingers
	c.eventually("it is known to be queued", func() bool {
		c.home.mu.Lock()
		defer c.home.mu.Unlock()
		return !c.home.locks[crowdedKey].open.queued.IsZero()
	})
	c.release(c.first)
	c.rest(c.next(0, c.first), 1)
}
