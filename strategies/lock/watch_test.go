package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/strategies/lock"
)

// The first renewal hangs for longer than the TTL. The loss of the lease must be reported once, when the lease expires.
// No second renewal may be sent while the first is under way.
func TestWatchdogFails(t *testing.T) {
	for _, ttl := range []time.Duration{2 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var losses atomic.Int64
			locker, b := open(t, lock.TTL(ttl), lock.Watchdog(),
				lock.With(lock.Hooks{Lost: func(*lock.Lease) { losses.Add(1) }}))
			b.extending = func() { time.Sleep(2 * time.Minute) } // of a client that ignores contexts
			began := time.Now()
			err := locker.WithLock(t.Context(), "key", func(ctx context.Context) error {
				<-ctx.Done()
				if took := time.Since(began); took != ttl {
					t.Errorf("the context of a lease of %v ended after %v", ttl, took)
				}
				return context.Cause(ctx)
			})
			if !errors.Is(err, lock.ErrNotHeld) {
				t.Errorf("it returned %v, want ErrNotHeld", err)
			}
			time.Sleep(time.Hour)
			if n := losses.Load(); n != 1 {
				t.Errorf("its loss was reported %d times", n)
			}
			if n := b.extended.Load(); n != 1 {
				t.Errorf("%d renewals were sent, although the first was not answered", n)
			}
			_ = locker.Close()
		})
	}
}

// Renewals fail until 1 s before the lease expires. The watchdog must repeat them until one succeeds, so that the lease
// is not lost.
func TestWatchdogRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(30*time.Second), lock.Watchdog())
		heals := time.Now().Add(29 * time.Second)
		b.refusing = func() error {
			if time.Now().Before(heals) {
				return errBusy
			}
			return nil
		}
		held := acquire(t, locker)
		time.Sleep(time.Hour)
		if lost(held) {
			t.Error("the lease is lost although renewals succeeded before its end")
		}
		_ = locker.Close()
	})
}

// An Extend by a second shortens a lease of a minute, but its reply does not arrive. The loss must be reported after a
// second.
func TestUnansweredExtensionMayShortenLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(time.Minute))
		held := acquire(t, locker)
		b.extending = func() {
			b.mu.Lock()
			b.owner.until = time.Now().Add(time.Second)
			b.mu.Unlock()
			time.Sleep(time.Hour)
		}
		lost := held.Lost()
		synctest.Wait()
		go func() { _ = held.Extend(t.Context(), time.Second) }()
		began := time.Now()
		<-lost
		if took := time.Since(began); took != time.Second {
			t.Errorf("the loss was reported after %v, not after a second", took)
		}
		_ = locker.Close()
		time.Sleep(time.Hour)
	})
}

// A renewal never gets its reply. Close must return after 2 s.
func TestCloseWithHangingRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(30*time.Second), lock.Watchdog())
		end := make(chan struct{})
		defer close(end)
		b.extending = func() { <-end }
		acquire(t, locker)
		time.Sleep(15 * time.Second)
		began := time.Now()
		_ = locker.Close()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Each renewal prolongs the lease by only 200 ms, although the TTL is 3 s. The watchdog must renew the lease before it
// expires, with at most 100 renewals in 5 s.
func TestWatchdogOfBoundedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(3*time.Second), lock.Watchdog())
		b.shortest = 200 * time.Millisecond
		lease := acquire(t, locker)
		defer func() { _ = lease.Release(context.Background()) }()
		for range 500 {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if left := time.Until(lease.ValidUntil()); left <= 0 {
				t.Fatalf("it ran out %v ago", -left)
			}
		}
		if n := b.extended.Load(); n > 100 {
			t.Errorf("it was renewed %d times in 5s", n)
		}
	})
}

// Release frees the lock while a renewal is under way, so the renewal finds no lease. The watchdog must not report this
// as a loss.
func TestRenewalDuringRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(30*time.Second), lock.Watchdog(), lock.With(lock.Hooks{
			Lost: func(*lock.Lease) { t.Error("the hook Lost was called") },
		}))
		entered, leave := make(chan struct{}), make(chan struct{})
		b.extending = sync.OnceFunc(func() { close(entered); <-leave })
		held := acquire(t, locker)
		<-entered
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		close(leave)
		synctest.Wait()
		if lost(held) {
			t.Error("the lease counts as lost")
		}
		if err := locker.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The watchdog must renew the lease every third of its TTL until the release. Close must end the watchdogs and close
// the channels that Lost returns, even if Lost is called only after Close.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(time.Minute))
		watched := func() *lock.FencedLease {
			t.Helper()
			return acquire(t, locker, lock.TTL(30*time.Second), lock.Watchdog())
		}
		renewed := func(held *lock.FencedLease, in time.Duration, want int64, isLost bool) {
			t.Helper()
			time.Sleep(in)
			if n := b.extended.Load(); n != want || lost(held) != isLost {
				t.Errorf("%v later it was renewed %d times, want %d; lost: %v", in, n, want, lost(held))
			}
		}
		held := watched()
		renewed(held, 10*time.Minute+time.Second, 60, false)
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		renewed(held, time.Hour, 60, false)
		held = watched()
		renewed(held, 25*time.Second, 62, false)
		if err := locker.Close(); err != nil {
			t.Error(err)
		}
		renewed(held, 0, 62, true)
		time.Sleep(time.Minute)
		renewed(watched(), 0, 62, true) // a lease without a watchdog
	})
}
