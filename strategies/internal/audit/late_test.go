package audit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// begin does something in the background that is on its way when begin returns.
func begin(t *testing.T, p *trial.Path, do func() error) (result chan error) {
	t.Helper()
	p.Keep()
	result = make(chan error, 1)
	go func() { result <- do() }()
	for end := time.Now().Add(patience); p.Keeping() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was sent")
		}
	}
	time.Sleep(20 * time.Millisecond)
	return result
}

// arrive has what was kept back arrive.
func arrive(t *testing.T, late trial.Late) {
	t.Helper()
	if err := late.Deliver(); err != nil {
		t.Fatalf("what came late was not answered: %v", err)
	}
}

// free expects that another process gets the lock soon.
func free(t *testing.T, locker strategies.Locker) strategies.Lease {
	t.Helper()
	return freeKey(t, locker, "key")
}

func freeKey(t *testing.T, locker strategies.Locker, key string) strategies.Lease {
	t.Helper()
	return freeKeyEvery(t, 5*time.Millisecond, locker, key)
}

// freeKeyEvery is freeKey that asks so often.
func freeKeyEvery(t *testing.T, pause time.Duration, locker strategies.Locker, key string) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		lease, err := locker.(strategies.Trier).TryAcquire(ctx, key)
		if err == nil {
			return lease
		}
		if ctx.Err() != nil {
			t.Fatalf("the lock is held by nobody, and not free: %v", err)
		}
		time.Sleep(pause)
	}
}

// An acquire that arrives after the wait was given up takes the lock for a moment at most,
// and not for the hour that its lease would have lasted.
func TestLateAcquire(t *testing.T) {
	for _, how := range []string{"wait", "try"} {
		t.Run(how, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				server := redistest.Start(t)
				p := new(trial.Path)
				locker := open(t, name, server.Addr, p.Dial, time.Hour)
				other := open(t, name, server.Addr, nil, time.Hour)
				if err := release(t, acquire(t, locker)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(1100 * time.Millisecond) // so that all it has to say goes with the acquire
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := begin(t, p, func() error {
					do := locker.Acquire
					if how == "try" {
						do = locker.(strategies.Trier).TryAcquire
					}
					lease, err := do(ctx, "key")
					if err == nil {
						_ = lease.Release(context.Background())
					}
					return err
				})
				late := p.Snap()
				cancel()
				if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("the wait returned %v", err)
				}
				if err := release(t, free(t, other)); err != nil { // what it owed is paid
					t.Fatal(err)
				}
				arrive(t, late)
				_ = release(t, free(t, other))
			})
		})
	}
}

// An extension that arrives late does not undo a later one.
func TestLateExtend(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		p := new(trial.Path)
		holder := open(t, name, server.Addr, p.Dial, time.Hour)
		other := open(t, name, server.Addr, nil, time.Hour)
		trial.Calm(t, func(times int) string {
			lease := acquire(t, holder)
			defer func() { _ = release(t, lease) }()
			extend := lease.(strategies.Extender).Extend
			short := time.Duration(times) * 500 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := begin(t, p, func() error { return extend(ctx, short) })
			late := p.Snap()
			cancel()
			<-done // with an error, unless it was quick to go another way
			if err := extend(t.Context(), 20*time.Minute); err != nil {
				return err.Error()
			}
			arrive(t, late)
			time.Sleep(short + 10*time.Millisecond)
			if _, err := other.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
				t.Errorf("another got the lock: %v, while it was valid for %v", err, time.Until(until(lease)))
			}
			return ""
		})
	})
}

// A release whose answer is lost is asked again: it was one, also when the next owner has
// come and gone.
func TestReleaseAskedAgain(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		p := new(trial.Path)
		holder := open(t, name, server.Addr, p.Dial, time.Hour)
		other := open(t, name, server.Addr, nil, time.Hour)
		_ = release(t, acquire(t, holder)) // so that Redis knows the scripts
		lease := acquire(t, holder)
		p.Mute()
		done := make(chan error, 1)
		go func() { done <- lease.Release(context.Background()) }()
		for range 2 {
			if err := release(t, free(t, other)); err != nil {
				t.Fatal(err)
			}
		}
		p.Snap()
		if err := <-done; err != nil {
			t.Errorf("a release that was made returned %v", err)
		}
	})
}
