package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/strategies/lock"
)

// refuses makes the backend refuse Extend and Release for the duration d.
func (b *backend) refuses(d time.Duration) {
	heals := time.Now().Add(d)
	b.refusing = func() error {
		if time.Now().Before(heals) {
			return errBusy
		}
		return nil
	}
}

// The backend refuses the release for 1 s. WithLock must repeat the release until it succeeds. In one case the
// background release frees the lock before that, and another client acquires it. WithLock must not report this as a
// loss.
func TestWithLockRepeatsTheRelease(t *testing.T) {
	for name, frees := range map[string]func(*backend){
		"alone":             func(*backend) {},
		"in the background": (*backend).steal, // freed, and then acquired by another
	} {
		synctest.Test(t, func(t *testing.T) {
			locker, b := open(t, lock.TTL(time.Minute))
			var returned time.Time
			err := locker.WithLock(t.Context(), "key", func(context.Context) error {
				b.refuses(time.Second)
				returned = time.Now()
				go func() {
					time.Sleep(500 * time.Millisecond)
					frees(b)
				}()
				return nil
			})
			if took := time.Since(returned); err != nil || took < time.Second || took > 2*time.Second {
				t.Errorf("%s: it returned %v after %v", name, err, took)
			}
			_ = locker.Close()
		})
	}
}

func TestWithLockAbandonsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, b := open(t, lock.TTL(time.Minute))
		var returned time.Time
		err := locker.WithLock(t.Context(), "key", func(context.Context) error {
			b.refuses(time.Hour)
			returned = time.Now()
			return nil
		})
		if took := time.Since(returned); !errors.Is(err, errBusy) || took > 6*time.Second {
			t.Errorf("it returned %v after %v", err, took)
		}
		_ = locker.Close()
	})
}

// The first release fails, and then another client gets the lock. If the lease had expired before the first release,
// the second must return ErrNotHeld. Otherwise the second must not return ErrNotHeld, because the first may have freed
// the lock. The third must return ErrNotHeld in both cases.
func TestReleaseAfterAFailedRelease(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		synctest.Test(t, func(t *testing.T) {
			locker, b := open(t, lock.TTL(time.Minute))
			held := acquire(t, locker)
			if late {
				time.Sleep(time.Minute)
			}
			b.refuses(time.Second)
			if err := held.Release(t.Context()); !errors.Is(err, errBusy) {
				t.Errorf("%s: the first release: %v", name, err)
			}
			b.steal()
			time.Sleep(2 * time.Second)
			if err := held.Release(t.Context()); errors.Is(err, lock.ErrNotHeld) != late {
				t.Errorf("%s: the second release: %v", name, err)
			}
			if err := held.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
				t.Errorf("%s: the third release: %v", name, err)
			}
			_ = locker.Close()
		})
	}
}
