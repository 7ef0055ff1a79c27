package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// interruption is how a release is cancelled: before a command of it is sent, or before the
// answer to it is read.
type interruption struct {
	what string
	hold func(w *wire, step int) *gate
}

func interruptions() []interruption {
	return []interruption{
		{"before its command", (*wire).holdWrite},
		{"before the answer to its command", (*wire).holdAnswers},
	}
}

// cancel begins a release, cancels it at that step and waits for its end.
func (n interruption) cancel(s *stage, i *instance, lease strategies.Lease, step int) (err error, caught bool) { //nolint:revive // that order reads
	gate := n.hold(i.wire, step)
	w := s.background(i, "key", lease.Release)
	caught = gate.catchesBefore(w)
	w.cancel()
	time.Sleep(time.Millisecond)
	gate.open()
	w.returned("a release that was cancelled")
	return w.err, caught
}

// cancelledRelease cancels a release at each of its steps, and releases again: whoever
// waits must be served, long before the TTL is over.
func cancelledRelease(s *stage) {
	both := s.several(2, longTTL)
	s.release(s.acquire(both[0], "key")) // its connections are open
	for _, n := range interruptions() {
		for step := range steps {
			leases := s.fill(both[0], "key")
			w := s.waiter(both[1], "key")
			w.parked()
			err, caught := n.cancel(s, both[0], leases[0], step)
			s.repeat(leases[0], err, "was cancelled "+n.what)
			w.overdue("a waiter waits on a lock whose release was cancelled %s number %d, and then repeated", n.what, step+1)
			w.finish()
			s.release(leases[1:]...)
			if !caught {
				break
			}
		}
	}
	// With a context that has ended before.
	leases := s.fill(both[0], "key")
	ended, end := context.WithCancel(context.Background())
	end()
	s.repeat(leases[0], leases[0].Release(ended), "had an ended context")
	s.release(leases[1:]...)
	if !s.free(both[1], "key") {
		s.fatalf("a release had an ended context and was repeated, and the lock is not free")
	}
}

// repeat releases again what was released with that error.
func (s *stage) repeat(lease strategies.Lease, err error, how string) {
	if err == nil || errors.Is(err, strategies.ErrNotHeld) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	if second := lease.Release(ctx); second != nil && !errors.Is(second, strategies.ErrNotHeld) {
		s.errorf("a release %s and returned %q; when repeated it returned %q", how, err, second)
	}
}

// abandonedRelease cancels a release at each of its steps and leaves it at that: the lock
// has to become free by its TTL.
func abandonedRelease(s *stage) {
	i, other := s.open(shortTTL), s.open(longTTL)
	s.release(s.acquire(i, "key")) // its connections are open
	for _, n := range interruptions() {
		for step := range steps {
			leases := s.fill(i, "key")
			_, caught := n.cancel(s, i, leases[0], step)
			if !s.eventually(func() bool { return !s.held(other, "key") }) {
				s.fatalf("a release was cancelled %s number %d, and %v later, with a TTL of %v, the lock is not free: its watchdog goes on",
					n.what, step+1, s.patience, shortTTL)
			}
			_ = s.releaseAll(leases[1:])
			if !caught {
				break
			}
		}
	}
}

// renewalAndRelease releases while a renewal is on its way, to the server or back.
func renewalAndRelease(s *stage) {
	const ttl = 2 * shortTTL
	i, other := s.open(ttl), s.open(longTTL)
	s.release(s.acquire(i, "key")) // its connections are open
	for _, n := range interruptions() {
		for range 3 {
			s.calmly(ttl, func(ttl time.Duration, still *standstill) string {
				on := i
				if ttl > 2*shortTTL {
					on = s.open(ttl)
					s.release(s.acquire(on, "key"))
				}
				return s.releaseDuringRenewal(on, other, n, still)
			})
		}
	}
}

// releaseDuringRenewal returns what is wrong.
func (s *stage) releaseDuringRenewal(i, other *instance, n interruption, still *standstill) (fault string) {
	lease := s.acquire(i, "key")
	time.Sleep(5 * time.Millisecond) // all that belongs to the acquire is over
	still.look()
	gate := n.hold(i.wire, 0)
	caught := gate.catches(2 * time.Second)
	still.look()
	w := s.background(i, "key", lease.Release)
	w.within(30 * time.Millisecond) // it may wait for the renewal to end
	gate.open()
	w.returned("a release during a renewal")
	still.look()
	switch {
	case !caught:
		s.Logf("no renewal was seen")
	case w.err != nil:
		return "a release while a renewal was under way returned " + w.err.Error()
	}
	if watched, ok := lease.(strategies.Watched); ok {
		select {
		case <-watched.Lost():
			fault = "a lease that was released while a renewal was under way was told to be lost"
		case <-time.After(20 * time.Millisecond):
		}
	}
	if fault == "" && !s.free(other, "key") {
		fault = "a lock that was released while a renewal was under way is not free"
	}
	return fault
}
