package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/lock"
)

func lost(l *lock.FencedLease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// Another client holds the lock. If the time of Wait passes first, Acquire must return ErrHeld and no context error. If
// the caller's context ends first, Acquire must return the context's error and not ErrHeld.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(time.Minute))
		held := acquire(t, locker)
		for _, wait := range []time.Duration{0, time.Second} {
			start := time.Now()
			_, err := locker.Acquire(t.Context(), "key", lock.Wait(wait))
			if !errors.Is(err, lock.ErrHeld) || errors.Is(err, context.DeadlineExceeded) || time.Since(start) != wait {
				t.Errorf("Wait(%v): %v after %v, want ErrHeld alone", wait, err, time.Since(start))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := locker.Acquire(ctx, "key", lock.Wait(time.Hour))
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lock.ErrHeld) {
			t.Errorf("a context that ends first: %v, want its error alone", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		again := acquire(t, locker, lock.Wait(time.Second))
		if err := errors.Join(again.Release(t.Context()), locker.Close()); err != nil || !b.closed {
			t.Error(err)
		}
	})
}

// The Locker has a TTL of a minute. The Acquire with an option TTL of a second must use a second, and the next Acquire
// a minute.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(time.Minute))
		first := acquire(t, locker, lock.TTL(time.Second))
		if left := time.Until(first.ValidUntil()); left != time.Second {
			t.Errorf("it is valid for %v, want 1s", left)
		}
		time.Sleep(time.Second)
		second := acquire(t, locker)
		if err := first.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("the release of a lease that ran out: %v, want ErrNotHeld", err)
		}
		if second.FencingToken() <= first.FencingToken() {
			t.Errorf("tokens %d and %d do not grow", first.FencingToken(), second.FencingToken())
		}
		if want := []time.Duration{time.Second, time.Minute}; !slices.Equal(b.asked, want) {
			t.Errorf("it was asked for %v, want %v", b.asked, want)
		}
	})
}

// Open must report all invalid options in one error and not open the lock. For an invalid TTL, Acquire and Extend must
// return an error without calling the backend.
func TestOptionFaults(t *testing.T) {
	_, err := lock.Open(nil, func(goredis.Config, struct{}) (*backend, error) {
		t.Error("New opened the lock")
		return nil, nil
	}, struct{}{}, []lock.Option{lock.TTL(-time.Second), lock.Wait(-1)})
	if err == nil || !strings.Contains(err.Error(), "TTL") || !strings.Contains(err.Error(), "Wait") {
		t.Errorf("New: %v, want both faults", err)
	}
	locker, b := open(t)
	if b.config.TTL != lock.DefaultTTL || b.config.Prefix != "lock:" {
		t.Errorf("the defaults are %v and %q", b.config.TTL, b.config.Prefix)
	}
	if _, err := locker.Acquire(t.Context(), "key", lock.TTL(0)); err == nil || len(b.asked) > 0 {
		t.Errorf("a TTL of 0: %v, and %d asked", err, len(b.asked))
	}
	held := acquire(t, locker)
	if err := held.Extend(t.Context(), -time.Second); err == nil || b.extended.Load() > 0 || lost(held) {
		t.Errorf("an extension by -1s: %v, and %d asked; lost: %v", err, b.extended.Load(), lost(held))
	}
	_ = locker.Close()
}

// The lease expires or is stolen while the function of WithLock runs. The function's context must end when the TTL has
// passed, and not earlier. Its cause must be ErrNotHeld, and WithLock must return that too.
func TestWithLockEndsWithTheLease(t *testing.T) {
	for name, end := range map[string]func(*backend){"ran out": func(*backend) {}, "stolen": (*backend).steal} {
		synctest.Test(t, func(t *testing.T) {
			locker, b := open(t, lock.TTL(time.Minute))
			start := time.Now()
			var token int64
			err := locker.WithLock(t.Context(), "key", func(ctx context.Context) error {
				token, _ = lock.TokenFrom(ctx)
				time.Sleep(59 * time.Second)
				if ctx.Err() != nil {
					t.Errorf("%s: it ended early", name)
				}
				end(b)
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), lock.ErrNotHeld) {
					t.Errorf("%s: the cause is %v, want ErrNotHeld", name, context.Cause(ctx))
				}
				return nil
			})
			if took := time.Since(start); took != time.Minute {
				t.Errorf("%s: it took %v, want 1m", name, took)
			}
			if !errors.Is(err, lock.ErrNotHeld) {
				t.Errorf("%s: it returned %v, want ErrNotHeld", name, err)
			}
			if token == 0 {
				t.Errorf("%s: there was no token", name)
			}
			_ = locker.Close()
		})
	}
}

// WithLock must return the error of its function, and must release the lock even if the function panics.
func TestWithLockReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t)
		mine := errors.New("mine")
		ctx, cancel := context.WithCancel(t.Context())
		if err := locker.WithLock(ctx, "key", func(inside context.Context) error {
			cancel()
			<-inside.Done()
			if !errors.Is(context.Cause(inside), context.Canceled) {
				t.Errorf("the cause is %v", context.Cause(inside))
			}
			return mine
		}); !errors.Is(err, mine) || errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("it returned %v, want the work's error alone", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("WithLock swallowed the panic")
				}
			}()
			_ = locker.WithLock(t.Context(), "key", func(context.Context) error { panic("mine") })
		}()
		if b.owner != nil {
			t.Error("the lock is still held")
		}
	})
}

// The Locker must call the hooks in the order of the events, with the duration of each wait and hold, and with the
// error of each call.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var mu sync.Mutex
		say := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf(format, args...))
		}
		locker, _ := open(t, lock.TTL(time.Minute), lock.With(lock.Hooks{
			Waited: func(_ context.Context, key string, wait time.Duration, err error) {
				say("waited %s %v held=%v", key, wait, errors.Is(err, lock.ErrHeld))
			},
			Acquired: func(_ context.Context, l *lock.Lease) { say("acquired %s", l.Key()) },
			Lost:     func(l *lock.Lease) { say("lost %s", l.Key()) },
			Released: func(_ context.Context, _ *lock.Lease, held time.Duration, err error) {
				say("released after %v lost=%v", held, errors.Is(err, lock.ErrNotHeld))
			},
		}))
		first := acquire(t, locker)
		_, _ = locker.TryAcquire(t.Context(), "key")
		_, _ = locker.Acquire(t.Context(), "key", lock.Wait(time.Second))
		_ = first.Release(t.Context())
		second := acquire(t, locker)
		time.Sleep(time.Hour)
		_ = second.Release(t.Context())
		want := []string{
			"waited key 0s held=false", "acquired key", "waited key 0s held=true", "waited key 1s held=true",
			"released after 1s lost=false", "waited key 0s held=false", "acquired key", "lost key",
			"released after 1h0m0s lost=true",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
		_ = locker.Close()
	})
}

// Without hooks, an acquisition through the Locker may allocate at most one object more than one directly at the
// backend.
func TestUnsetHooksCostNothing(t *testing.T) {
	locker, b := open(t, lock.TTL(time.Minute))
	direct := testing.AllocsPerRun(100, func() {
		l, _ := b.AcquireFor(t.Context(), "key", time.Minute)
		_ = l.Release(t.Context())
	})
	through := testing.AllocsPerRun(100, func() { _ = acquire(t, locker).Release(t.Context()) })
	if through > direct+1 {
		t.Errorf("%v allocations, of them %v by the lock itself; want at most one more", through, direct)
	}
}
