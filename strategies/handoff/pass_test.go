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

// With linger=0s no lease is passed on, so waiters get the lock in the order in which they were queued, also across
// processes. Only this variant claims FIFO.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	if trial.Variant(t, "handoff").Info().Claims.FIFO || !trial.Variant(t, "handoff:linger=0s").Info().Claims.FIFO {
		t.Error("FIFO must be claimed if and only if no lease is passed on")
	}
	const wave = 24
	var order []string
	who := func(n int) string { return fmt.Sprint("hab"[n%3:n%3+1], n) }
	for n := range 4 * wave { // for each waiter that gets the lock another comes
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

// Processes with and without tokens can share a lock. Each token is larger than all earlier ones, even if leases
// without a token were granted in between.
func TestProcessesWithAndWithoutTokens(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	with, without := attentive(t, server, "handoff"), attentive(t, server, "handoff:tokens=false")
	q := newQueue(t, server)
	trial.Release(t, acquire(t, with))
	lease := acquire(t, without) // this one sends no TIME
	q.join("with", with)
	trial.Release(t, q.turns(lease, "with"))
	q.nothingLeft(with, without)
}

// A process that has taken a free lock is not subscribed yet. Its release queues it again, because another of its
// clients waits. It must learn of its next turn by the message or by an immediate check, because its periodic check is
// due only in an hour.
func TestReleaseQueuesNonListeningProcess(t *testing.T) {
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

// The first caller of a process requests the lock directly, and other callers arrive before the reply. All callers get
// the lock in the order of their arrival, whether Redis grants the direct request or not. If the first caller gives up,
// the others keep their order.
func TestCallersDuringFirstRequest(t *testing.T) {
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

// A lease uses the 1024 tokens of one µs of Redis's clock, so a process takes at most 1024 turns on it. The tokens of
// these turns are consecutive, and those of the next lease are larger.
func TestMaximumTurns(t *testing.T) {
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

// A lease is passed on only if between half of the requested TTL and the whole TTL is left, so each caller gets at
// least half of what it requested.
func TestPassNeedsHalfATTL(t *testing.T) {
	t.Parallel()
	for ttl, order := range map[time.Duration][2]string{
		2 * time.Hour: {"b1", "a2"}, 40 * time.Minute: {"a2", "b1"}, 20 * time.Minute: {"b1", "a2"},
	} {
		p := newPair(t, "cohort", time.Hour, 2, 1)
		held := p.turns(p.first, "a1")
		extend(t, held, ttl) // long enough for all waiters
		held = p.turns(held, order[0])
		if left := time.Until(held.ValidUntil()); order[0] == "a2" && left > 59*time.Minute {
			t.Errorf("Redis keeps it for as long as before an hour, and %v is said", left)
		}
		p.done(p.turns(held, order[1]))
	}
}

// If a holder never releases the lock, the waiters of its process wait until the lease expires. They then get a lease
// from Redis, and the channel Lost of the holder's lease is closed. This also holds if earlier holders passed the lease
// on to this holder.
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
			for range 2 * passed { // the first gets it from Redis and passes it on
				_ = stuck.Release(t.Context())
				stuck = q.any().lease
			}
			s := q.any()
			if s.err != nil {
				t.Fatalf("%s got: %v", s.who, s.err)
			}
			if now := time.Now(); now.Before(stuck.ValidUntil()) {
				t.Errorf("the waiter got the lock %v before the end of the lease", stuck.ValidUntil().Sub(now))
			}
			if !isLost(stuck) {
				t.Error("the loss was not reported to the stuck holder")
			}
			notHeld(t, stuck)
			_ = s.lease.Release(t.Context()) // it may have run out
			_ = q.any().lease.Release(t.Context())
			q.nothingLeft(p)
		}
	})
}
