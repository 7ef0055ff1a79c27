package locktest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// acquireAndRelease acquires and releases a free lock several times. A lock that claims exclusion must also refuse a
// second release of the same lease.
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

// notHeld releases a lease that has ended, and reports a failure unless the release returns ErrNotHeld. what describes
// the release.
func (s *stage) notHeld(what string, lease strategies.Lease) {
	if err := s.returns(lease.Release); !errors.Is(err, strategies.ErrNotHeld) {
		s.errorf("%s returned %v, want ErrNotHeld", what, err)
	}
}

// closed checks that a closed instance grants nothing, and that the holder of a lease can still release the lease. If
// the lock closes its own connections, the release may fail. The lease then lasts until its TTL ends.
func closed(s *stage) {
	i := s.open(longTTL)
	lease := s.acquire(i, "key")
	if err := i.Close(); err != nil {
		s.fatalf("close: %v", err)
	}
	w := s.waiterFor(i, "other", i.Acquire)
	if !w.within(s.patience) {
		s.fatalf("an acquire that was called after Close does not return")
	}
	if w.err == nil {
		s.errorf("an acquire after Close was granted")
		s.release(w.lease)
	} else if !errors.Is(w.err, strategies.ErrClosed) {
		s.errorf("an acquire after Close returned %q, want ErrClosed", w.err)
	}
	switch err := s.returns(lease.Release); {
	case err == nil:
	case s.ownConnections(i) && !errors.Is(err, strategies.ErrNotHeld):
		s.Logf("a release after Close returned %q, because the lock had closed its own connections: the lease lasts until "+
			"its TTL ends", err)
		s.forget("key")
	default:
		s.fatalf("release: %v", err)
	}
}

// unusualKeys acquires locks on unusual keys, and checks that the lock on a key K does not also block the key K+"x".
// The keys do not contain the check's id, because the id would make them less unusual.
func unusualKeys(s *stage) {
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
			s.errorf("the lock on key %.20q is free although a client holds it", key)
		}
		if !s.free(i, key+"x") {
			s.errorf("a lock on key %.20q also locks the key with an x added", key)
		}
		// passOn adds a waiter, because the names of the keys and channels that waiters use may be derived from the key.
		s.passOn(leases, i, key, func() {})
	}
}

// releaseTwice repeats the release of a lease after another caller has acquired the lock: first a caller of the same
// instance, then a caller of another instance. The repeated release must return ErrNotHeld and must not free the lock.
func releaseTwice(s *stage) {
	both := s.several(2, longTTL)
	for _, next := range both {
		old := s.acquire(both[0], "key")
		s.release(old)
		leases := s.fill(next, "key")
		s.full(both[1], "key")
		s.notHeld("a release of a lock that another client holds", old)
		if !s.held(both[1], "key") {
			s.fatalf("the release of an ended lease freed the next holder's lock")
		}
		s.release(leases...)
	}
}

// tryLock makes try-locks of a held lock, first in another instance and then in the holder's instance. These try-locks
// must return ErrHeld. Then it makes a try-lock of a free lock. This try-lock must return a lease.
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
		s.fatalf("a try-lock of a held lock waits instead of returning ErrHeld")
	case w.err == nil:
		s.broken(exclusive, "a try-lock was granted although other clients held all permits")
		s.release(w.lease)
	case !errors.Is(w.err, strategies.ErrHeld):
		s.errorf("a try-lock of a held lock returned %q, want ErrHeld", w.err)
	}
	if n := both[1].probe.Counts().Attempts - before; n > 1 {
		s.errorf("a try-lock of a held lock made %d attempts, want 1", n)
	}
	// A lock that identifies its owner by thread, client or process mistakes a second caller of the holder's instance for
	// the holder.
	own, _ := strategies.As[strategies.Trier](both[0].Locker)
	w = s.waiterFor(both[0], "key", own.TryAcquire)
	switch {
	case !w.within(s.patience):
		s.fatalf("a try-lock waits instead of returning ErrHeld, although its own instance holds the lock")
	case w.err == nil:
		s.broken(exclusive, "a try-lock was granted the lock although another caller of its instance held it")
		_ = s.releaseAll(append(leases, w.lease)) // either release may have freed the lock, which this check does not judge
		return
	case !errors.Is(w.err, strategies.ErrHeld):
		s.errorf("a try-lock of a lock that its own instance holds returned %q, want ErrHeld", w.err)
	}
	s.release(leases...)

	w = s.waiterFor(both[1], "key", trier.TryAcquire)
	if !w.within(s.patience) {
		s.fatalf("a try-lock of a free lock has not returned")
	}
	if w.err != nil {
		s.fatalf("a try-lock of a free lock returned %q", w.err)
	}
	leases = append(s.take(both[0], "key", s.info.Capacity-1), w.lease)
	if !s.held(both[0], "key") {
		s.broken(exclusive, "a lock that a try-lock had acquired was granted to another caller while it was held")
	}
	s.release(leases...)
}

// reentrance checks AcquireAs: the same owner gets the lock again, another owner of the same instance waits, and the
// lock is free after as many releases as acquires.
func reentrance(s *stage) {
	both := s.several(2, longTTL)
	locker, ok := strategies.As[strategies.Reentrant](both[0].lock)
	if !ok {
		s.fatalf("the lock's Info claims re-entrance, but the lock has no AcquireAs")
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
			s.fatalf("the owner's second acquire waits for the owner's own lease")
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
		s.errorf("the cancelled wait of another owner returned %v, want context.Canceled", other.err)
	}
	for n, lease := range leases {
		if !s.held(both[1], "key") {
			s.fatalf("the lock was free after %d of %d releases", n, len(leases))
		}
		s.release(lease)
	}
	if !s.free(both[1], "key") {
		s.errorf("the lock was not free after the last release")
	}
}

// exclusion lets clients of several instances compete for one key and counts the concurrent holders. For a lock with
// one permit it also checks that a correct lock could have produced the recorded history.
func exclusion(s *stage) {
	const instances, turns = 3, 8
	perInstance := 5 + s.info.Capacity/instances // in total more clients than permits
	f := &contest{stage: s, history: NewHistory()}
	var clients []*waiter
	for n, i := range s.several(instances, longTTL) {
		for c := range perInstance {
			locker := f.history.Watch(n*perInstance+c, i.Locker)
			clients = append(clients, s.background(i, "key", func(ctx context.Context) error {
				for turn := 0; turn < turns && f.turn(ctx, locker, turn); turn++ {
				}
				return nil
			}))
		}
	}
	f.all(clients)
	if n := f.overlaps.Load(); n > 0 {
		s.errorf("%d of %d acquisitions found more holders than permits", n, f.acquired.Load())
	}
	if want := int64(instances * perInstance * turns); !s.Failed() && f.acquired.Load() != want {
		s.errorf("the clients acquired the lock %d times, want %d", f.acquired.Load(), want)
	}
	if s.info.Capacity == 1 {
		f.check()
	}
}

// contest is the state that the competing clients of the exclusion check share.
type contest struct {
	*stage
	history                    *History
	inside, overlaps, acquired atomic.Int64
}

// all waits until all clients have returned. If no client acquires the lock within the patience, all reports the
// failure and cancels all clients.
func (f *contest) all(clients []*waiter) {
	for _, w := range clients {
		for before := int64(-1); !w.within(f.patience); {
			now := f.acquired.Load()
			if now != before {
				before = now
				continue
			}
			f.broken(waking, "clients compete for the lock, but none of them gets it")
			for _, other := range clients {
				other.end()
			}
		}
	}
}

// turn acquires the lock, counts the concurrent holders and releases the lock. Some turns begin with an attempt that is
// likely to fail. turn returns false if the client must stop.
func (f *contest) turn(ctx context.Context, locker strategies.Locker, turn int) bool {
	lease, err := f.attempt(ctx, locker, turn)
	if lease == nil && err == nil {
		lease, err = locker.Acquire(ctx, "key")
	}
	if err != nil {
		if ctx.Err() == nil {
			f.broken(granting, "an acquire by one of many competing clients returned %q", err)
		}
		return false
	}
	if f.inside.Add(1) > int64(f.info.Capacity) {
		f.overlaps.Add(1)
	}
	f.acquired.Add(1)
	if turn%3 != 0 {
		time.Sleep(100 * time.Microsecond)
	}
	f.inside.Add(-1)
	if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
		f.errorf("the release of a valid lease returned %q", err)
	}
	return true
}

// impatience is the timeout of the attempts that are likely to fail.
const impatience = 2 * time.Millisecond

// attempt makes, on some turns, a try-lock or an acquire that ends after impatience. It returns nil, nil if it made no
// attempt or did not get the lock.
func (f *contest) attempt(ctx context.Context, locker strategies.Locker, turn int) (strategies.Lease, error) {
	var lease strategies.Lease
	var err error
	trier, tries := strategies.As[strategies.Trier](locker)
	switch {
	case turn%4 == 1 && tries:
		lease, err = trier.TryAcquire(ctx, "key")
	case turn%8 == 2:
		short, cancel := context.WithTimeout(ctx, impatience)
		defer cancel()
		lease, err = locker.Acquire(short, "key")
	case turn%8 == 6:
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(impatience, cancel).Stop()
		lease, err = locker.Acquire(short, "key")
	}
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if errors.Is(err, strategies.ErrHeld) || ended && ctx.Err() == nil {
		return nil, nil
	}
	return lease, err
}

// check reports a failure if no mutex could have produced the history. If the lock claims fencing, check also reports a
// history that no fenced mutex could have produced.
func (f *contest) check() {
	promise := exclusive
	err := CheckHistory(Mutex, f.history.Operations(), f.fixture.Drawings)
	if err == nil && f.info.Claims.Fencing {
		promise = growing
		err = CheckHistory(FencedMutex, f.history.Operations(), f.fixture.Drawings)
	}
	switch {
	case errors.Is(err, ErrUndecided):
		f.notJudged("%w", err)
	case err != nil:
		f.broken(promise, "%v", err)
	}
}

// permits checks that exactly as many clients can hold the lock as there are permits.
func permits(s *stage) {
	both := s.several(2, longTTL)
	for _, freed := range []int{1, s.info.Capacity} {
		leases := s.fill(both[0], "key")
		var waiting []*waiter
		for n := range freed + 1 {
			w := s.waiterFor(both[n%2], "key", both[n%2].Acquire)
			w.settle()
			waiting = append(waiting, w)
		}
		if n := granted(waiting); n > 0 {
			s.brokenNow(exclusive, "%d more leases than the %d permits were granted", n, s.info.Capacity)
		}
		s.release(leases[:freed]...)
		if !s.eventually(func() bool { return granted(waiting) >= freed }) {
			s.fatalf("%d permits were released, but only %d waiters got one", freed, granted(waiting))
		}
		time.Sleep(20 * time.Millisecond)
		if n := granted(waiting); n > freed {
			s.brokenNow(exclusive, "%d permits were released, but %d leases were granted", freed, n)
		}
		s.release(leases[freed:]...)
		var last []*waiter
		for _, w := range waiting {
			if !w.isOver() || w.err != nil {
				last = append(last, w)
				continue
			}
			s.release(w.lease)
		}
		for _, w := range last {
			w.finish()
			s.release(w.lease)
		}
	}
}

// granted returns the number of waiters whose acquire has returned.
func granted(waiting []*waiter) int {
	n := 0
	for _, w := range waiting {
		if w.isOver() {
			n++
		}
	}
	return n
}
