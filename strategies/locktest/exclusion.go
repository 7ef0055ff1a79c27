package locktest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// exclusion has clients of several instances compete for one key, and counts how many are
// inside at a time. It also checks the history of a lock with one permit.
func exclusion(s *stage) {
	const instances, turns = 3, 8
	perInstance := 5 + s.info.Capacity/instances // more in all than there are permits
	f := &fight{stage: s, history: NewHistory()}
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
		s.errorf("%d of %d acquisitions found more inside than may be", n, f.acquired.Load())
	}
	if want := int64(instances * perInstance * turns); !s.Failed() && f.acquired.Load() != want {
		s.errorf("%d acquisitions, want %d", f.acquired.Load(), want)
	}
	if s.info.Capacity == 1 {
		f.check()
	}
}

// fight is what the clients of exclusion share.
type fight struct {
	*stage
	history                    *History
	inside, overlaps, acquired atomic.Int64
}

// all waits for all clients. When none has acquired the lock for too long, it ends them.
func (f *fight) all(clients []*waiter) {
	for _, w := range clients {
		for before := int64(-1); !w.within(f.patience); {
			now := f.acquired.Load()
			if now != before {
				before = now
				continue
			}
			f.broken(waking, "clients that fight for a lock wait and none gets it")
			for _, other := range clients {
				other.end()
			}
		}
	}
}

// turn acquires, counts the clients inside and releases. Some turns begin with an attempt
// that is likely to fail. It says whether to go on.
func (f *fight) turn(ctx context.Context, locker strategies.Locker, turn int) bool {
	lease, err := f.attempt(ctx, locker, turn)
	if lease == nil && err == nil {
		lease, err = locker.Acquire(ctx, "key")
	}
	if err != nil {
		if ctx.Err() == nil {
			f.broken(granting, "an acquire in a crowd returned %q", err)
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

// attempt returns nil, nil if it made no attempt or did not get the lock.
func (f *fight) attempt(ctx context.Context, locker strategies.Locker, turn int) (strategies.Lease, error) {
	var lease strategies.Lease
	var err error
	trier, tries := strategies.As[strategies.Trier](locker)
	switch {
	case turn%4 == 1 && tries:
		lease, err = trier.TryAcquire(ctx, "key")
	case turn%4 == 2:
		short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
		defer cancel()
		lease, err = locker.Acquire(short, "key")
	}
	if errors.Is(err, strategies.ErrHeld) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return lease, err
}

// check compares the history with the model of the lock.
func (f *fight) check() {
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

// permits checks that as many clients hold the lock as there are permits, and no more.
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
			s.brokenNow(exclusive, "%d more than %d permits were granted", n, s.info.Capacity)
		}
		s.release(leases[:freed]...)
		if !s.eventually(func() bool { return granted(waiting) >= freed }) {
			s.fatalf("%d permits were given back, and %d granted to those who wait", freed, granted(waiting))
		}
		time.Sleep(20 * time.Millisecond)
		if n := granted(waiting); n > freed {
			s.brokenNow(exclusive, "%d permits were given back, and %d granted", freed, n)
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

// granted counts the waiters that are over.
func granted(waiting []*waiter) int {
	n := 0
	for _, w := range waiting {
		if w.isOver() {
			n++
		}
	}
	return n
}
