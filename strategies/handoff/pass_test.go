package handoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Where nothing is passed on, whoever is queued first is served first, also among
// processes; and that alone is claimed as such.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	if trial.Variant(t, "handoff").Info().Claims.FIFO || !trial.Variant(t, "handoff:linger=0s").Info().Claims.FIFO {
		t.Error("FIFO is claimed where a lease is passed on, or not where it is not")
	}
	const wave = 24
	p := newPair(t, "handoff:linger=0s", time.Hour, 0, 0)
	processes := []trial.Process{p.h, p.a, p.b}
	lease := p.first
	for n := range wave {
		p.join(fmt.Sprint(n), processes[n%3])
	}
	for n := range 3 * wave { // as one is served, another comes
		p.join(fmt.Sprint(wave+n), processes[n*n%3])
		lease = p.turns(lease, fmt.Sprint(n))
	}
	for n := range wave {
		lease = p.turns(lease, fmt.Sprint(3*wave+n))
	}
	p.done(lease)
}

// Who is the first of a process to ask comes before those who came while the answer was under way. They are
// served also if the first gets the lock at once, or gives up.
func TestOthersComeWhileTheFirstAsks(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"is refused", "is granted it", "gives up"} {
		t.Run(how, func(t *testing.T) {
			onOne(t, places, func(t *testing.T, server *redistest.Server, variant string) {
				w := new(wire)
				p, other := w.start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
				q := newQueue(t, server)
				var held *holding
				if how == "is refused" {
					held = acquire(t, other)
				}
				w.stall()
				q.come("first", p)
				poll.Until(t, "the first asks", func() bool { return w.sent(command("set")) })
				for n, who := range []string{"second", "third"} {
					q.come(who, p)
					poll.Until(t, "another waits", func() bool {
						waiting, _ := handoff.Waiting(locker(p), "key", time.Hour)
						return waiting == n+1 && handoff.Asking(locker(p), "key")
					})
				}
				if how == "gives up" {
					q.leave("first")
				}
				w.flow()
				switch how {
				case "is refused":
					q.waiting(p, 3)
					held = q.turns(held, "first second")
				case "is granted it":
					held = q.turns(q.next("first"), "second")
				default:
					held = q.next("second")
				}
				trial.Release(t, q.turns(held, "third"))
				q.nothingLeft(p, other)
			})
		})
	}
}

// Whoever waits in a process when the lease comes to it is passed it, in order, for as many turns as batch
// allows. Who comes later waits for those of the other process.
func TestTurnsOfALease(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"handoff:linger=1h", "cohort"} {
		p := newPair(t, variant, time.Hour, 3, 3)
		held := p.turns(p.first, "a1")
		p.join("a4", p.a)
		held = p.turns(held, "a2 a3 b1")
		p.join("a5", p.a)
		p.join("b4", p.b)
		p.done(p.turns(held, "b2 b3 a4 a5 b4"))
	}
	for batch, order := range map[int]string{1: "a1 b1 a2 b2 a3 b3 a4 a5", 2: "a1 a2 b1 b2 a3 a4 b3 a5"} {
		p := newPair(t, fmt.Sprint("cohort:batch=", batch), time.Hour, 5, 3)
		p.done(p.turns(p.first, order))
	}

	// Who has got a free lock passes it to those who came while it asked, and to no later ones.
	p := newPair(t, "cohort", time.Hour, 0, 0)
	p.join("h1", p.h)
	p.join("b1", p.b)
	p.join("h2", p.h)
	p.done(p.turns(p.first, "b1 h1 h2"))

	const linger = 20 * time.Millisecond
	p = newPair(t, fmt.Sprint("handoff:linger=", linger), time.Hour, 2, 2)
	held := p.turns(p.first, "a1")
	time.Sleep(linger + time.Millisecond)
	held = p.turns(held, "b1")
	time.Sleep(linger + time.Millisecond)
	p.done(p.turns(held, "a2 b2"))
}

// A µs has 1024 tokens, so as many turns has a lease at most: their tokens follow each
// other, and the next lease has those of the next µs.
func TestMostTurns(t *testing.T) {
	t.Parallel()
	p := newPair(t, "cohort", time.Hour, 0, 0)
	const waiters = handoff.MostTurns + 2
	for n := range waiters {
		p.come(fmt.Sprint("a", n+1), p.a)
	}
	p.waiting(p.a, waiters)
	p.join("b1", p.b)
	held := p.first
	first := int64(0)
	for n := range handoff.MostTurns {
		trial.Release(t, held)
		s := p.any()
		if s.err != nil || s.who == "b1" {
			t.Fatalf("turn %d: %s got: %v", n, s.who, s.err)
		}
		held = s.lease
		if n == 0 {
			first = held.FencingToken()
		}
		if token := held.FencingToken(); token != first+int64(n) {
			t.Fatalf("turn %d of a lease from %d has token %d", n, first, token)
		}
	}
	held = p.turns(held, "b1")
	if token := held.FencingToken(); token != first+handoff.MostTurns {
		t.Errorf("the next lease has token %d, after one from %d", token, first)
	}
	p.drain(held, 2)
	p.nothingLeft(p.h, p.a, p.b)
}

// A lease is passed while half of its TTL is left, and not more than one.
func TestPassedWithHalfATTL(t *testing.T) {
	t.Parallel()
	trial.Calm(t, func(times int) string { // too little is left
		ttl := 200 * time.Millisecond * time.Duration(times)
		p := newPair(t, "cohort", ttl, 2, 1)
		held := p.turns(p.first, "a1")
		time.Sleep(time.Until(held.ValidUntil()) - ttl/2 + ttl/20)
		if err := held.Release(t.Context()); err != nil {
			return err.Error()
		}
		next := p.any()
		if next.who != "b1" || next.err != nil { // its lease may have run out before it heard of it
			return fmt.Sprintf("%s was served when it was b1's turn: %v", next.who, next.err)
		}
		if err := next.lease.Release(t.Context()); err != nil {
			return err.Error()
		}
		_ = p.next("a2").Release(t.Context())
		return ""
	})
	for ttl, order := range map[time.Duration][2]string{2 * time.Hour: {"b1", "a2"}, 40 * time.Minute: {"a2", "b1"}} {
		p := newPair(t, "cohort", time.Hour, 2, 1)
		held := p.turns(p.first, "a1")
		extend(t, held, ttl) // for all who are to have it
		held = p.turns(held, order[0])
		if left := time.Until(held.ValidUntil()); order[0] == "a2" && left > 59*time.Minute {
			t.Errorf("Redis keeps it for as long as before an hour, and %v is said", left)
		}
		p.done(p.turns(held, order[1]))
	}
}

// A holder that never releases keeps its neighbours waiting until the lease is over; then
// they have their turn from Redis, and the stuck one is told. So does one that gets stuck in the middle.
func TestStuckHolder(t *testing.T) {
	onOne(t, every, func(t *testing.T, server *redistest.Server, variant string) {
		for _, passed := range []int{0, 1} {
			if passed > 0 && variant != "cohort" {
				break
			}
			p, q := trial.Start(t, server, variant, 400*time.Millisecond), newQueue(t, server)
			stuck := acquire(t, p)
			for n := range 2 + 2*passed {
				q.come(fmt.Sprint(n), p)
			}
			for range 2 * passed { // the first has it from Redis, and passes it on
				_ = stuck.Release(t.Context())
				stuck = q.any().lease
			}
			s := q.any()
			if s.err != nil {
				t.Fatalf("%s got: %v", s.who, s.err)
			}
			if now := time.Now(); now.Before(stuck.ValidUntil()) {
				t.Errorf("it was served %v before the lease was over", stuck.ValidUntil().Sub(now))
			}
			if !isLost(stuck) {
				t.Error("the stuck holder was not told")
			}
			notHeld(t, stuck)
			_ = s.lease.Release(t.Context()) // it may have run out meanwhile
			_ = q.any().lease.Release(t.Context())
			q.nothingLeft(p)
		}
	})
}
