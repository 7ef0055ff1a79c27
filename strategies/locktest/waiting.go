package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

// cancelledWait ends a wait by its context: by a deadline, by a cancel, and before it begins.
func cancelledWait(s *stage) {
	both := s.several(2, longTTL)
	leases := s.fill(both[0], "key")
	s.full(both[1], "key")
	timed, cancel := context.WithTimeout(context.Background(), 40*time.Millisecond)
	defer cancel()
	ended, end := context.WithCancel(context.Background())
	end()
	for _, wait := range []struct {
		what string
		ctx  context.Context
		want error
	}{
		{"a wait with a deadline", timed, context.DeadlineExceeded},
		{"an acquire with an ended context", ended, context.Canceled},
	} {
		w := s.newWaiter(both[1], "key")
		w.run(func(context.Context) (err error) { w.lease, err = both[1].Acquire(wait.ctx, "key"); return err })
		w.refused(wait.what, wait.want)
	}
	w := s.waiter(both[1], "key")
	w.parked()
	w.cancel()
	w.refused("a cancelled wait", context.Canceled)

	if !s.held(both[1], "key") {
		s.errorf("a wait that was given up freed the holder's lock")
	}
	s.release(leases...)
	s.release(s.fill(both[1], "key")...)
}

// refused expects the waiter to end with that error.
func (w *waiter) refused(what string, want error) {
	switch {
	case !w.within(w.s.patience):
		w.s.fatalf("%s goes on although its context has ended", what)
	case w.err == nil:
		w.s.brokenNow(exclusive, "%s was granted a lock that others held", what)
	case !errors.Is(w.err, want):
		w.s.errorf("%s returned %q, want %q", what, w.err, want)
	}
}

// cancelledAnytime cancels waiters at any moment around a release, also while they are woken
// or granted the lock. The lock must not stay held, and the waiter behind them must get it.
// All wait in one instance: a waiter of another instance would wake the stranded one by its
// release.
func cancelledAnytime(s *stage) {
	const impatient = 12
	both := s.several(2, longTTL)
	for round := range s.rounds {
		leases := s.fill(both[0], "key")
		waiting := s.crowd(both[1], "key", impatient)
		patient := s.crowd(both[1], "key", 1)[0]

		var all sync.WaitGroup
		anytime := func(end func()) {
			all.Go(func() {
				shortly(time.Duration(rand.Int64N(int64(300 * time.Microsecond))))
				end()
			})
		}
		together := func() {
			for _, w := range waiting {
				w.cancel()
			}
		}
		switch {
		case round == 0: // once, before the release
			together()
			for _, w := range waiting {
				w.end()
			}
		case round%2 == 0:
			anytime(together)
		default:
			for _, w := range waiting {
				anytime(w.cancel)
			}
		}
		s.release(leases[0])
		all.Wait()
		for _, w := range waiting {
			w.end()
			if w.err != nil && !errors.Is(w.err, context.Canceled) {
				s.errorf("a cancelled wait returned %q", w.err)
			}
		}
		patient.overdue("a waiter waits on a lock that is free, behind others who gave up")
		patient.finish()
		s.release(leases[1:]...)
		if !s.eventually(func() bool { return s.free(both[1], "key") }) {
			s.brokenNow(ungranted, "everybody has released the lock or given up, and it is not free")
		}
	}
}

// crowd starts n waiters together. It returns when all have asked and wait, as far as that
// can be seen soon.
func (s *stage) crowd(i *instance, key string, n int) []*waiter {
	asked := i.probe.Counts().Attempts
	var waiting []*waiter
	for range n {
		waiting = append(waiting, s.waiter(i, key))
	}
	for range 20 {
		if time.Sleep(time.Millisecond); i.probe.Counts().Attempts >= asked+int64(n) {
			break
		}
	}
	waiting[n-1].quiet()
	return waiting
}

// shortly sleeps for less than the system's timers can.
func shortly(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		runtime.Gosched()
	}
}

// givenUpWaits checks that cancelled waits leave nothing while the instances live on. What
// the first of them created may stay, if later ones, for other keys, add nothing.
func givenUpWaits(s *stage) {
	both := s.several(2, longTTL)
	give := func(key string) {
		leases := s.fill(both[0], key)
		var waiting []*waiter
		for n := range 4 {
			waiting = append(waiting, s.waiter(both[n%2], key))
		}
		waiting[3].parked()
		for _, w := range waiting {
			w.end()
		}
		s.release(leases...)
	}
	give("the first")
	standing := s.leftovers()
	for n := range 4 {
		give(fmt.Sprint("another ", n))
	}
	s.gone("of waits that were given up, keys and channels", func() []string {
		return slices.DeleteFunc(s.leftovers(), func(left string) bool { return slices.Contains(standing, left) })
	})
}
