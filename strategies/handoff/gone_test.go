package handoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// A script skips the slots of processes that no longer listen, even if a PSUBSCRIBE client receives all messages. One
// script examines at most 64 such slots. If there are more, later scripts of the waiters skip the rest.
func TestDeadProcessesAreSkipped(t *testing.T) {
	t.Parallel()
	for _, gone := range []int{5, 63, 200} {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, "handoff", time.Hour, 0, 0)
			everything := p.server.PSubscribe(t.Context(), "*")
			t.Cleanup(func() { _ = everything.Close() })
			if _, err := everything.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			lease := p.first
			p.server.Append(t.Context(), lock, "+")
			for n := range gone {
				p.server.RPush(t.Context(), list, entry("X", n, time.Hour))
			}
			p.join("waiter", p.a)
			calls := locktest.Calls(t, p.server, func() { lease = p.turns(lease, "waiter") })
			if calls["lpop"] != gone+1 {
				t.Errorf("%d slots were skipped", calls["lpop"]-1)
			}
			// One additional message is allowed, because the waiter's process may publish an echo to itself.
			if n := calls["spublish"]; gone < 64 && (n < gone+1 || n > gone+2) {
				t.Errorf("%d messages", calls["spublish"])
			}
			p.done(lease)
		})
	}
}

// A process that is still subscribed but has stopped running gets one turn, which lasts for one TTL. After that all its
// other slots are skipped.
func TestStoppedProcessCostsOneTTL(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Millisecond
	p := newPair(t, "handoff:linger=0s", time.Hour, 0, 0)
	lease := p.first
	stopped := p.server.SSubscribe(t.Context(), "trial:handoff:"+process("S"))
	defer func() { _ = stopped.Close() }()
	if _, err := stopped.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.server.Append(t.Context(), lock, "+")
	for n := range 5 {
		p.server.RPush(t.Context(), list, entry("S", n, ttl))
	}
	p.join("one", p.a)
	p.join("two", p.a)
	lease = p.turns(lease, "one")
	turns := 0
	for {
		message, err := stopped.ReceiveTimeout(t.Context(), 100*time.Millisecond)
		if err != nil {
			break
		}
		if _, is := message.(*redis.Message); is {
			turns++
		}
	}
	if turns != 1 {
		t.Errorf("%d turns went to a process that is stopped, want one", turns)
	}
	p.done(p.turns(lease, "two"))
}

// If Redis grants the lock to an id for which the process has no slot, the process releases the lock, and the next slot
// gets it.
func TestGrantToUnknownSlotIsPassedOn(t *testing.T) {
	t.Parallel()
	p := newPair(t, "handoff", time.Hour, 1, 0)
	p.server.LPush(t.Context(), list, handoff.ID(locker(p.a), "key")+" 3600000")
	p.done(p.turns(p.first, "a1"))
}

// Waiters keep their slots when their subscriptions break, however far Redis's clock is from the clock of the
// processes. A process that missed the message about its turn gets another turn.
func TestSlotsSurviveBrokenSubscriptions(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			if ahead != 0 {
				var clock *redistest.Clock
				server, clock = redistest.StartSettable(t)
				clock.Set(ahead)
			}
			for _, variant := range every {
				p := newPairOn(t, server, variant, time.Hour, 2, 2)
				for range 3 {
					ofA, ofB := handoff.Listener(locker(p.a)), handoff.Listener(locker(p.b))
					killSubscriptions(t, p.server)
					poll.Until(t, "both listen again, on separate connections", func() bool {
						a, b := handoff.Listener(locker(p.a)), handoff.Listener(locker(p.b))
						return a != nil && b != nil && a != ofA && b != ofB
					})
				}
				held := p.turns(p.first, "a1 a2 b1 b2")
				p.join("a3", p.a)
				p.join("b3", p.b)
				killSubscriptions(t, p.server)
				p.drain(held, 2) // perhaps no process receives a message
				p.nothingLeft(p.h, p.a, p.b)
			}
		})
	}
}

// Redis keeps no key if no client holds the lock or waits for it. If the holder and all waiters die, Redis keeps the
// lock for its TTL and the queue for ten minutes.
func TestKeysExpire(t *testing.T) {
	onOne(t, slotKinds, func(t *testing.T, server *redistest.Server, variant string) {
		p := newPairOn(t, server, variant, time.Minute, 1, 1)
		ttl := func(key string) time.Duration { return p.server.PTTL(t.Context(), key).Val() }
		if left := ttl(list); left < 9*time.Minute || left > 10*time.Minute {
			t.Errorf("the queue is kept for %v", left)
		}
		keys := p.server.Keys(t.Context(), "*").Val()
		if len(keys) != 2 {
			t.Errorf("keys %q while the lock has a holder and waiters", keys)
		}
		held := p.turns(p.first, "a1")
		if left := ttl(lock); left < 50*time.Second || left > time.Minute {
			t.Errorf("the lock of a dead holder is kept for %v", left)
		}
		p.server.PExpire(t.Context(), list, time.Minute) // waiters renew the TTL at their next check
		poll.Until(t, "the queue is kept again", func() bool { return ttl(list) > 9*time.Minute })
		p.done(p.turns(held, "b1"))
	})
}

// If Redis loses a lease that a process is passing on, the process notices this at the first pass that is at least 25
// ms after its last check. The channel Lost of the current holder's lease is then closed.
func TestFlushEndsPassing(t *testing.T) {
	t.Parallel()
	p := newPair(t, "cohort", time.Hour, 4, 0)
	held := p.turns(p.first, "a1")
	p.do("FLUSHALL")
	lease := p.b.Acquire(t, "key")
	time.Sleep(26 * time.Millisecond)
	trial.Release(t, held) // no process knows this yet
	held = p.next("a2")
	poll.Until(t, "the loss is reported", func() bool { return isLost(held) })
	if n, _ := p.server.Exists(t.Context(), lock).Result(); n != 1 {
		t.Error("the other process's lock is gone")
	}
	p.waiting(p.a, 2)
	ends(t, p.a)
	other, _ := enter(t, p.b, "the other", "key", lease, nil)
	notHeld(t, held)
	p.done(p.turns(other, "a3 a4"))
}

// Tokens keep increasing after Redis restarts from a snapshot that is older than the last token. They also keep
// increasing after 2038, when a time in seconds no longer fits into 31 bits.
func TestTokensGrow(t *testing.T) {
	each(t, both, func(t *testing.T, variant string) {
		server := redistest.Start(t)
		p := trial.Start(t, server, variant, time.Hour)
		server.Save()
		for range 50 {
			trial.Release(t, acquire(t, p))
		}
		server.Kill()
		server.RestartWithData(t)
		// The result of a release on a broken connection is unknown, so the test waits for a working connection.
		poll.Until(t, "the process is back", func() bool { return locker(p).Prepare(t.Context(), nil) == nil })
		trial.Release(t, acquire(t, p)) // with a larger token than all before

		server, clock := redistest.StartSettable(t)
		p = trial.Start(t, server, variant, time.Minute)
		const year = 365 * 24 * time.Hour
		for _, ahead := range []time.Duration{0, 11 * year, 13 * year, 50 * year} {
			clock.Set(ahead)
			_ = acquire(t, p).Release(t.Context())
		}
	})
}
