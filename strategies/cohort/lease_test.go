package cohort

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// A release whose caller gives up is carried out for those who wait all the same, and its
// result told to who asks again.
func TestReleaseIsGivenUp(t *testing.T) {
	inBubble(t, 1, Defaults(), func(b *bench) {
		ended, end := context.WithCancel(context.Background())
		end()
		for _, refused := range []bool{false, true} {
			held := b.gets(0)
			w := b.come(0)
			b.on(0, "requeue", fault{lost: refused, delay: testTTL / 10})
			if err := held.Release(ended); !errors.Is(err, context.Canceled) {
				b.Errorf("a release whose context has ended returned %v", err)
			}
			b.waits(w)
			time.Sleep(testTTL / 10)
			next := b.has(w)
			b.release(held, nil)
			b.release(held, strategies.ErrNotHeld)
			b.release(next, nil)
		}
	})
}

// Whether a release was carried out may remain unknown: then it can be repeated, and who
// waits gets the lock by that or when the lease is over.
func TestReleaseFails(t *testing.T) {
	inBubble(t, 1, Defaults(), func(b *bench) {
		for _, again := range []bool{true, false} {
			held := b.gets(0)
			expiry := time.Now().Add(testTTL)
			w := b.come(0)
			b.faults(0, func(c string) fault { return fault{lost: c == "requeue" || c == "release"} })
			b.release(held, errFault)
			b.waits(w)
			b.faults(0, noFaults)
			if again {
				b.release(held, nil)
			} else {
				time.Sleep(time.Until(expiry))
			}
			b.release(b.has(w), nil)
		}
	})
}

// What keeps the process from the lock is told to all who wait.
func TestAcquireFails(t *testing.T) {
	inBubble(t, 1, Defaults(), func(b *bench) {
		b.on(0, "acquire", fault{lost: true, delay: testTTL / 10})
		w := []*caller{b.come(0), b.come(0)}
		time.Sleep(testTTL / 10)
		for _, w := range w {
			b.fails(w, errFault)
		}
		b.faults(0, noFaults)
		b.release(b.gets(0), nil)
	})
}

// Close ends all waits; who holds can release.
func TestClose(t *testing.T) {
	inBubble(t, 2, Defaults(), func(b *bench) {
		held := b.gets(0)
		beside, elsewhere := b.come(0), b.come(1)
		for _, l := range b.lockers {
			if err := l.Close(); err != nil {
				b.Error(err)
			}
		}
		b.fails(beside, strategies.ErrClosed)
		b.fails(elsewhere, strategies.ErrClosed)
		b.fails(b.come(0), strategies.ErrClosed)
		if _, err := b.lockers[0].TryAcquire(context.Background(), "key"); !errors.Is(err, strategies.ErrClosed) {
			b.Errorf("a try-lock after Close returned %v", err)
		}
		b.carriedOut(counts{acquires: 2})
		b.release(held, nil)
		b.carriedOut(counts{releases: 1})
	})
	// A lease that is lost after Close is told so.
	inBubble(t, 1, Defaults(), func(b *bench) {
		held := b.gets(0)
		lost := held.Lost()
		if err := b.lockers[0].Close(); err != nil {
			b.Error(err)
		}
		<-lost
		b.release(held, strategies.ErrNotHeld)
	})
}

// A batch is at most so large; the tokens are what counts.
func TestBatchIsCapped(t *testing.T) {
	inBubble(t, 2, Options{Batch: 4}, func(b *bench) {
		held := b.gets(1)
		var w []*caller
		for range 6 {
			w = append(w, b.come(0))
		}
		other := b.come(1)
		b.release(held, nil)
		b.carriedOut(counts{acquires: 2, requeues: 1})
		for n := range 4 {
			held = b.has(w[n])
			b.release(held, nil)
		}
		b.carriedOut(counts{requeues: 1})
		b.release(b.has(other), nil)
		for n := range 2 {
			b.release(b.has(w[4+n]), nil)
		}
		b.carriedOut(counts{releases: 2})
	})
}

// What a holder has extended beyond the TTL is cut back before it is passed; an extension
// that Redis answers too late is none.
func TestExtendByTheHolder(t *testing.T) {
	inBubble(t, 1, Defaults(), func(b *bench) {
		first := b.gets(0)
		w := []*caller{b.come(0), b.come(0), b.come(0)}
		b.release(first, nil)
		held := b.has(w[0])
		if err := held.Extend(context.Background(), 10*testTTL); err != nil {
			b.Fatal(err)
		}
		if left := time.Until(held.ValidUntil()); left != 10*testTTL-margin {
			b.Errorf("it is valid for %v", left)
		}
		time.Sleep(3 * testTTL)
		b.release(held, nil)
		held = b.has(w[1])
		if left := time.Until(held.ValidUntil()); left != testTTL-margin {
			b.Errorf("it was passed with %v left", left)
		}
		b.on(0, "extend", fault{delay: 2 * testTTL})
		if err := held.Extend(context.Background(), 10*testTTL); !errors.Is(err, strategies.ErrNotHeld) {
			b.Errorf("an extension that came too late returned %v", err)
		}
		b.release(b.has(w[2]), strategies.ErrNotHeld) // it is over, too, by now
	})
}

// A try-lock asks Redis once, if nobody of the process holds the lock or waits; those who
// come meanwhile wait for it.
func TestTryAcquire(t *testing.T) {
	inBubble(t, 2, Defaults(), func(b *bench) {
		try := func(process int) (strategies.Lease, error) {
			return b.lockers[process].TryAcquire(context.Background(), "key")
		}
		lease, err := try(0)
		if err != nil {
			b.Fatal(err)
		}
		w := b.come(0)
		for process := range 2 {
			if _, err := try(process); !errors.Is(err, strategies.ErrHeld) {
				b.Errorf("a try-lock of a held lock returned %v", err)
			}
		}
		b.release(lease.(*Lease), nil)
		b.release(b.has(w), nil)

		// One comes while the try is under way.
		for _, f := range []fault{{delay: testTTL / 10}, {delay: testTTL / 10, lost: true}} {
			b.on(0, "acquire", f)
			tried := make(chan *Lease, 1)
			go func() {
				lease, err := try(0)
				if err != nil {
					tried <- nil
				} else {
					tried <- lease.(*Lease)
				}
			}()
			time.Sleep(testTTL / 20)
			w := b.come(0)
			b.faults(0, noFaults)
			time.Sleep(testTTL / 20)
			if held := <-tried; held != nil {
				b.release(held, nil)
			} else if !f.lost {
				b.Error("the try-lock failed")
			}
			b.release(b.has(w), nil)
		}
	})
}
