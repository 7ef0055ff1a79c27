package cohort

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// margin is by how much a lease is over before its TTL.
const margin = testTTL / 100

// A holder that never returns keeps the process's others out until the lease is over, to
// the moment.
func TestStuckHolder(t *testing.T) {
	inBubble(t, 1, Defaults(), func(b *bench) {
		stuck := b.gets(0)
		lost := stuck.Lost()
		first, second := b.come(0), b.come(0)
		time.Sleep(testTTL - margin - 1)
		b.waits(first)
		time.Sleep(1)
		held := b.has(first)
		select {
		case <-lost:
		default:
			b.Error("the stuck holder was not told")
		}
		if held.FencingToken() <= stuck.FencingToken() {
			b.Errorf("token %d came after %d", held.FencingToken(), stuck.FencingToken())
		}
		b.carriedOut(counts{acquires: 1, requeues: 1})
		b.release(stuck, strategies.ErrNotHeld)
		if err := stuck.Extend(context.Background(), testTTL); !errors.Is(err, strategies.ErrNotHeld) {
			b.Errorf("extending what is lost returned %v", err)
		}
		b.release(held, nil)
		b.release(b.has(second), nil)
		b.carriedOut(counts{releases: 1})

		// Whoever comes when it is over already does not wait at all, …
		stuck = b.gets(0)
		time.Sleep(2 * testTTL)
		held = b.gets(0)
		b.release(stuck, strategies.ErrNotHeld)
		// … and who is told too late finds it lost.
		time.Sleep(testTTL)
		b.release(held, strategies.ErrNotHeld)
		select {
		case <-held.Lost():
		default:
			b.Error("a lease that is over is not lost")
		}
	})
}

// A batch is extended when it is passed with less than half its TTL left, and by nothing
// else.
func TestExtendedAtPasses(t *testing.T) {
	inBubble(t, 1, Defaults(), func(b *bench) {
		stuck := b.gets(0)
		var rest []*caller
		for range 4 {
			rest = append(rest, b.come(0))
		}
		b.release(stuck, nil) // the others are a batch from here on
		b.carriedOut(counts{acquires: 1, requeues: 1})
		held := b.has(rest[0])
		first := held.ValidUntil()
		time.Sleep(testTTL * 4 / 10)
		b.release(held, nil)
		b.carriedOut(counts{})
		held = b.has(rest[1])
		if !held.ValidUntil().Equal(first) {
			b.Errorf("it was passed with %v, it had %v", held.ValidUntil(), first)
		}
		time.Sleep(testTTL * 2 / 10)
		b.release(held, nil)
		b.carriedOut(counts{extends: 1})
		held = b.has(rest[2])
		if left := time.Until(held.ValidUntil()); left != testTTL-margin {
			b.Errorf("it was extended to %v", left)
		}
		time.Sleep(testTTL) // the last is served when it is over
		b.release(held, strategies.ErrNotHeld)
		b.release(b.has(rest[3]), nil)
		b.carriedOut(counts{requeues: 1, releases: 1})
	})
}

// If it is not known whether a batch was extended it is valid until when it was, and
// passed if that will do.
func TestUnansweredExtension(t *testing.T) {
	for name, f := range map[string]fault{"carried out": {mute: true}, "lost": {mute: true, lost: true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, Defaults(), func(b *bench) {
				stuck := b.gets(0)
				rest := []*caller{b.come(0), b.come(0), b.come(0)}
				b.release(stuck, nil)
				held := b.has(rest[0])
				until := held.ValidUntil()
				time.Sleep(time.Until(until) - testTTL*4/10)
				b.on(0, "extend", f)
				b.release(held, nil)
				held = b.has(rest[1])
				if !held.ValidUntil().Equal(until) {
					b.Errorf("it is valid for %v, want %v", time.Until(held.ValidUntil()), time.Until(until))
				}
				if left := time.Until(until); left != testTTL*2/10 {
					b.Errorf("it was passed with %v left", left)
				}
				b.release(held, nil) // with too little left
				third := b.has(rest[2])
				if left := time.Until(third.ValidUntil()); left != testTTL-margin {
					b.Errorf("the next has %v, want a lease of its own", left)
				}
				b.release(third, nil)
			})
		})
	}
}

// When Redis has lost the lease, which a broken connection lets suspect, nobody is
// passed it.
func TestForgottenLeaseIsNotPassed(t *testing.T) {
	inBubble(t, 2, Defaults(), func(b *bench) {
		first := b.gets(0)
		w := []*caller{b.come(0), b.come(0)}
		b.release(first, nil)
		held := b.has(w[0])
		b.server.forget(b.processes...)
		other := b.gets(1)
		b.release(held, strategies.ErrNotHeld)
		b.waits(w[1])
		b.release(other, nil)
		next := b.has(w[1])
		if next.FencingToken() <= other.FencingToken() {
			b.Errorf("token %d came after %d", next.FencingToken(), other.FencingToken())
		}
		// Somebody has deleted it, so that an extension is told.
		w = []*caller{b.come(0), b.come(0)}
		b.release(next, nil)
		held = b.has(w[0])
		b.server.forget()
		other = b.gets(1)
		time.Sleep(testTTL * 6 / 10)
		b.release(held, strategies.ErrNotHeld)
		b.waits(w[1])
		b.release(other, nil)
		next = b.has(w[1])
		// A break alone costs an extension.
		w = []*caller{b.come(0), b.come(0)}
		b.release(next, nil)
		held = b.has(w[0])
		b.server.mu.Lock()
		b.processes[0].broken++
		b.server.done = counts{}
		b.server.mu.Unlock()
		b.release(held, nil)
		b.carriedOut(counts{extends: 1})
		b.release(b.has(w[1]), nil)
	})
}

// The process has one entry in the queue whoever of its waiters goes; with the last it
// goes itself, at once.
func TestCancelledWaiters(t *testing.T) {
	inBubble(t, 2, Defaults(), func(b *bench) {
		other := b.gets(1)
		leader, second, third := b.come(0), b.come(0), b.come(0)
		leader.cancel()
		b.fails(leader, context.Canceled)
		if n := b.queued(); n != 1 {
			b.Errorf("the process has %d entries", n)
		}
		b.release(other, nil)
		held := b.has(second)
		third.cancel()
		b.fails(third, context.Canceled)
		b.carriedOut(counts{acquires: 2, releases: 1})
		b.release(held, nil) // there is nobody to pass it to
		b.carriedOut(counts{releases: 1})

		other = b.gets(1)
		b.on(0, "leave", fault{delay: testTTL / 10})
		last := b.come(0)
		last.cancel()
		b.waits(last) // until the process has left the queue
		late := b.come(0)
		time.Sleep(testTTL / 10)
		b.fails(last, context.Canceled)
		b.waits(late)
		if n := b.queued(); n != 1 {
			b.Errorf("the process has %d entries for who came while it left", n)
		}
		b.release(other, nil)
		b.release(b.has(late), nil)
	})
}

// A grant that nobody waits for any more is given up at once, on its way and in the very
// moment in which it is passed.
func TestCancelledWhileGranted(t *testing.T) {
	inBubble(t, 2, Defaults(), func(b *bench) {
		b.on(0, "acquire", fault{slow: testTTL / 10})
		w := b.come(0)
		w.cancel()
		time.Sleep(testTTL / 10)
		b.fails(w, context.Canceled)
		b.carriedOut(counts{acquires: 1, releases: 1})
		b.release(b.gets(1), nil)
		b.faults(0, noFaults)

		for range 100 {
			held := b.gets(0)
			w := []*caller{b.come(0), b.come(0), b.come(0)}
			b.release(held, nil)
			held = b.has(w[0])
			w[1].cancel()
			if err := held.Release(context.Background()); err != nil {
				b.Fatal(err)
			}
			synctest.Wait()
			if len(w[1].held) > 0 {
				b.release(b.has(w[1]), nil)
			}
			b.release(b.has(w[2]), nil)
		}
	})
}
