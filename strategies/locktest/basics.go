package locktest

import (
	"context"
	"errors"
	"strings"

	"github.com/lockbench/lockbench/strategies"
)

func acquireAndRelease(s *stage) {
	i := s.open(longTTL)
	for range 3 {
		s.release(s.acquire(i, "key"))
	}
	if excludes.missing(s.info) != "" {
		return
	}
	lease := s.acquire(i, "key")
	s.release(lease)
	s.notHeld("a second release", lease)
}

// notHeld releases a lease that nobody may hold any more.
func (s *stage) notHeld(what string, lease strategies.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	if err := lease.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		s.errorf("%s returned %v, want ErrNotHeld", what, err)
	}
}

func closed(s *stage) {
	i := s.open(longTTL)
	lease := s.acquire(i, "key")
	if err := i.Close(); err != nil {
		s.fatalf("close: %v", err)
	}
	w := s.waiterFor(i, "other", i.Acquire)
	if !w.within(s.patience) {
		s.fatalf("an acquire after Close does not return")
	}
	if w.err == nil {
		s.errorf("an acquire after Close was granted")
		s.release(w.lease)
	} else if !errors.Is(w.err, strategies.ErrClosed) {
		s.errorf("an acquire after Close returned %q, want ErrClosed", w.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	switch err := lease.Release(ctx); {
	case err == nil:
	case s.ownConnections(i) && !errors.Is(err, strategies.ErrNotHeld):
		s.Logf("a release after Close returned %q, since the lock's own connections are closed: the lease lasts "+
			"until its TTL ends", err)
		s.forget("key")
	default:
		s.fatalf("release: %v", err)
	}
}

func strangeKeys(s *stage) {
	i := s.open(longTTL)
	plain := s.fill(i, "key")
	s.full(i, "key")
	s.release(plain...)
	s.verbatim = true
	for _, key := range []string{
		"{", "}", "{}", "a{b", "a{b}c", "two words", " ", "line\nbreak", "tab\t", "null\x00byte", "*?[x]",
		"schlüssel", "鍵", "🔑", strings.Repeat("k", 1024), strings.Repeat("k{", 512), "",
	} {
		leases := s.fill(i, key)
		if !s.held(i, key) {
			s.errorf("key %.20q was not taken by whom it was granted to", key)
		}
		if !s.free(i, key+"x") {
			s.errorf("key %.20q is the same as with an x added", key)
		}
		// A waiter also uses keys and channels that are derived from the key.
		w := s.waiter(i, key)
		w.parked()
		s.release(leases[0])
		w.finish()
		s.release(leases[1:]...)
	}
}

// stranger releases a lease a second time after another caller has acquired the lock, on the
// same instance and on another one.
func stranger(s *stage) {
	both := s.several(2, longTTL)
	for _, next := range both {
		old := s.acquire(both[0], "key")
		s.release(old)
		leases := s.fill(next, "key")
		s.full(both[1], "key")
		s.notHeld("a release of what is another's", old)
		if !s.held(both[1], "key") {
			s.fatalf("a stranger's release freed the lock")
		}
		s.release(leases...)
	}
}

func tryLock(s *stage) {
	both := s.several(2, longTTL)
	trier, ok := strategies.As[strategies.Trier](both[1].Locker)
	if !ok {
		s.notApplicable("it has no try-lock")
	}
	leases := s.fill(both[0], "key")
	before := both[1].probe.Counts().Attempts
	w := s.waiterFor(both[1], "key", trier.TryAcquire)
	switch {
	case !w.within(s.patience):
		s.fatalf("a try-lock of a held lock waits for it")
	case w.err == nil:
		s.broken(exclusive, "a try-lock was granted a lock that others held")
		s.release(w.lease)
	case !errors.Is(w.err, strategies.ErrHeld):
		s.errorf("a try-lock of a held lock returned %q, want ErrHeld", w.err)
	}
	if n := both[1].probe.Counts().Attempts - before; n > 1 {
		s.errorf("a try-lock of a held lock tried %d times", n)
	}
	s.release(leases...)

	w = s.waiterFor(both[1], "key", trier.TryAcquire)
	if !w.within(s.patience) {
		s.fatalf("a try-lock of a free lock waits")
	}
	if w.err != nil {
		s.fatalf("a try-lock of a free lock returned %q", w.err)
	}
	leases = append(s.take(both[0], "key", s.info.Capacity-1), w.lease)
	if !s.held(both[0], "key") {
		s.broken(exclusive, "a lock taken by try-lock was granted again")
	}
	s.release(leases...)
}

func reentrance(s *stage) {
	both := s.several(2, longTTL)
	locker, ok := strategies.As[strategies.Reentrant](both[0].lock)
	if !ok {
		s.fatalf("it has no AcquireAs")
	}
	as := func(owner string) func(context.Context, string) (strategies.Lease, error) {
		return func(ctx context.Context, key string) (strategies.Lease, error) {
			return locker.AcquireAs(ctx, s.named(key), owner)
		}
	}
	var leases []strategies.Lease
	for range 3 {
		w := s.waiterFor(both[0], "key", as("me"))
		if !w.within(s.patience) {
			s.fatalf("the owner waits for itself")
		}
		if w.err != nil {
			s.fatalf("acquire again: %v", w.err)
		}
		leases = append(leases, w.lease)
	}
	other := s.waiterFor(both[0], "key", as("you"))
	other.parked()
	other.end()
	if !errors.Is(other.err, context.Canceled) {
		s.errorf("another owner's wait ended with %v", other.err)
	}
	for n, lease := range leases {
		if !s.held(both[1], "key") {
			s.fatalf("it was free after %d of %d releases", n, len(leases))
		}
		s.release(lease)
	}
	if !s.free(both[1], "key") {
		s.errorf("it was not free after the last release")
	}
}
