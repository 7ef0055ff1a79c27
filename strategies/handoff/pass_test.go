package handoff_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
	var order []string
	who := func(n int) string { return fmt.Sprint("hab"[n%3:n%3+1], n) }
	for n := range 4 * wave { // as one is served, another comes
		order = append(order, "+"+who(n))
		if n >= wave {
			order = append(order, who(n-wave))
		}
	}
	for n := range wave {
		order = append(order, who(3*wave+n))
	}
	newPair(t, "handoff:linger=0s", time.Hour, 0, 0).play(strings.Join(order, " "))
}

// Processes with tokens and without share a lock. Those that there are grow: the queue sees to it.
func TestTokensBesideNone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	with, without := attentive(t, server, "handoff"), attentive(t, server, "handoff:tokens=false")
	q := newQueue(t, server)
	trial.Release(t, acquire(t, with))
	lease := acquire(t, without) // which asks for no time
	q.join("with", with)
	trial.Release(t, q.turns(lease, "with"))
	q.nothingLeft(with, without)
}

// A process that has taken a free lock does not listen yet when its release queues it for its next waiter. It is told
// of the turn all the same, or finds at once that it has passed: no look is due for an hour.
func TestReleaseQueuesAProcessThatDoesNotListen(t *testing.T) {
	onOne(t, slotKinds[:1], func(t *testing.T, server *redistest.Server, variant string) {
		for _, at := range []string{"the other holds on", "the other is done at once"} {
			q, other := newQueue(t, server), trial.Start(t, server, variant, time.Hour)
			p := open(t, &redis.UniversalOptions{Addrs: []string{server.Addr}}, variant, time.Hour)
			handoff.Attend(locker(p), time.Hour)
			first := acquire(t, p)
			q.join("other", other)
			q.join("neighbour", p)
			trial.Release(t, first)
			held := q.next("other")
			if at == "the other holds on" {
				poll.Until(t, "the process listens", func() bool { return handoff.Listener(locker(p)) != nil })
			}
			trial.Release(t, q.turns(held, "neighbour"))
			q.nothingLeft(p, other)
		}
	})
}

// Who is the first of a process to ask comes before those who came while the answer was under way. They are
// served also if the first gets the lock at once, or gives up.
func TestOthersComeWhileTheFirstAsks(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"is refused", "is granted it", "gives up"} {
		t.Run(how, func(t *testing.T) {
			onOne(t, slotKinds, func(t *testing.T, server *redistest.Server, variant string) {
				p := newPairOn(t, server, variant, time.Hour, 0, 0)
				held := p.first
				if how != "is refused" {
					trial.Release(t, held)
				}
				p.stall()
				p.come("first", p.a)
				poll.Until(t, "the first asks", func() bool { return p.sent(command("set")) })
				for n, who := range []string{"second", "third"} {
					p.come(who, p.a)
					poll.Until(t, "another waits", func() bool {
						waiting, _ := handoff.Waiting(locker(p.a), "key", time.Hour)
						return waiting == n+1 && handoff.Asking(locker(p.a), "key")
					})
				}
				if how == "gives up" {
					p.leave("first")
				}
				p.flow()
				switch how {
				case "is refused":
					p.waiting(p.a, 3)
					held = p.turns(held, "first second")
				case "is granted it":
					held = p.turns(p.next("first"), "second")
				default:
					held = p.next("second")
				}
				p.done(p.turns(held, "third"))
			})
		})
	}
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
	if token := held.FencingToken(); token < first+handoff.MostTurns {
		t.Errorf("the next lease has token %d, after one from %d", token, first)
	}
	p.drain(held, 2)
	p.nothingLeft(p.h, p.a, p.b)
}

// A lease is passed while half of its TTL is left, and not more than one.
func TestPassedWithHalfATTL(t *testing.T) {
	t.Parallel()
	for ttl, order := range map[time.Duration][2]string{
		2 * time.Hour: {"b1", "a2"}, 40 * time.Minute: {"a2", "b1"}, 20 * time.Minute: {"b1", "a2"},
	} {
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
