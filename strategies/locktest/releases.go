package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/network"
	"github.com/lockbench/lockbench/strategies"
)

// interruption is where a call is held up.
type interruption struct {
	what string
	kind network.Kind
}

// timeouts are the moments at which a release runs out of time. Its connection breaks then.
var timeouts = []interruption{
	{"before its command", network.LostWrite},
	{"before the answer to its command", network.LostAnswer},
}

// timesOut starts a release whose context ends at that step, and waits for its return. there
// is false if the release has no such step.
func (s *stage) timesOut(i *instance, lease strategies.Lease, n interruption, step int) (there bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	w, caught := s.heldUp(i, n.kind, step, func() *waiter {
		return s.background(i, "key", func(context.Context) error { return lease.Release(ctx) })
	}, func() { <-ctx.Done() })
	w.returned("a release whose context has ended")
	return caught || w.err != nil, w.err // an error alone: the context ended before anything was sent
}

// cancelledRelease cancels a release at each of its steps, and releases again: a waiter must
// get the lock long before the TTL is over.
func cancelledRelease(s *stage) {
	s.expiring = true
	both := s.several(2, s.lasting())
	s.release(s.acquire(both[0], "key")) // this opens its connections
	for _, n := range timeouts {
		eachStep(func(step int) bool {
			leases := s.fill(both[0], "key")
			w := s.waiter(both[1], "key")
			w.parked()
			there, err := s.timesOut(both[0], leases[0], n, step)
			s.repeat(leases[0], err, "ran out of time "+n.what)
			if !w.within(s.patience) {
				s.fatalf("a release ran out of time %s number %d and was repeated, and %v later who waits has not "+
					"got the lock", n.what, step+1, s.patience)
			}
			w.finish()
			s.release(leases[1:]...)
			return there
		})
	}
	// The same with a context that ended before the release.
	leases := s.fill(both[0], "key")
	ended, end := context.WithCancel(context.Background())
	end()
	s.repeat(leases[0], leases[0].Release(ended), "had an ended context")
	s.release(leases[1:]...)
	if !s.free(both[1], "key") {
		s.fatalf("a release had an ended context and was repeated, and the lock is not free")
	}
}

// repeat releases again after a release that returned err.
func (s *stage) repeat(lease strategies.Lease, err error, how string) {
	if err == nil || errors.Is(err, strategies.ErrNotHeld) {
		return
	}
	if second := s.again(lease); second != nil && !errors.Is(second, strategies.ErrNotHeld) {
		s.errorf("a release %s and returned %q; when repeated it returned %q", how, err, second)
	}
}

// abandonedRelease cancels a release at each of its steps and does not repeat it: the lock
// must become free by its TTL.
func abandonedRelease(s *stage) {
	other := s.open(longTTL)
	s.awake(2*shortTTL, func(ttl time.Duration) {
		i := s.open(ttl)
		s.release(s.acquire(i, "key")) // this opens its connections
		for _, n := range timeouts {
			eachStep(func(step int) bool { return s.abandon(i, other, n, step, ttl) })
		}
	})
}

// abandon says whether the release has such a step.
func (s *stage) abandon(i, other *instance, n interruption, step int, ttl time.Duration) (there bool) {
	leases := s.fill(i, "key")
	there, _ = s.timesOut(i, leases[0], n, step)
	// A longer wait proves nothing: a machine that stands still ends a watchdog's lease too.
	limit := min(s.patience, 5*ttl)
	for end := time.Now().Add(limit); s.held(other, "key"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.fatalf("a release ran out of time %s number %d, and %v later, with a TTL of %v, the lock is not free: "+
				"its watchdog goes on",
				n.what, step+1, limit, ttl)
		}
	}
	_ = s.releaseAll(leases[1:])
	s.recovers(i) // its connection was broken
	return there
}

// renewalAndRelease releases a lease while a renewal is on its way to the server or back.
func renewalAndRelease(s *stage) {
	const ttl = 2 * shortTTL
	i, other := s.open(ttl), s.open(longTTL)
	renewed := s.acquire(i, "key")
	for range 3 { // loads the renewal script: EVALSHA, EVAL, EVALSHA
		gate := i.wire.Hold(network.Write, 0)
		gate.Catches(2 * time.Second)
		gate.Open()
	}
	_ = s.again(renewed)
	for _, n := range []interruption{
		{"on its way to the server", network.Write},
		{"on its way back", network.Answers},
	} {
		for range 2 {
			s.calmly(ttl, func(ttl time.Duration) string {
				on := i
				if ttl > 2*shortTTL {
					on = s.open(ttl)
					s.release(s.acquire(on, "key"))
				}
				return s.releaseDuringRenewal(on, other, n)
			})
		}
	}
}

// releaseDuringRenewal returns the fault, "" for none.
func (s *stage) releaseDuringRenewal(i, other *instance, n interruption) (fault string) {
	lease := s.acquire(i, "key")
	time.Sleep(5 * time.Millisecond) // the commands of the acquire are over
	gate := i.wire.Hold(n.kind, 0)
	caught := gate.Catches(2 * time.Second)
	w := s.background(i, "key", lease.Release)
	for look := 0; look < 20 && !w.isOver(); look++ { // the release may wait for the renewal to end
		time.Sleep(5 * time.Millisecond)
	}
	gate.Open()
	w.returned("a release during a renewal")
	switch {
	case !caught && s.ownConnections(i):
		s.notTried("its renewals cannot be held up: it does not dial with the Options in its Config")
	case !caught:
		s.notJudged("no renewal was seen on its way")
	case w.err != nil:
		return fmt.Sprintf("a release while a renewal was %s returned %q", n.what, w.err)
	}
	if watched, ok := strategies.As[strategies.Watched](lease); ok {
		for look := 0; look < 20 && fault == ""; look++ { // counts looks, not time: a stall stops the watchdog too
			select {
			case <-watched.Lost():
				fault = fmt.Sprintf("a lease that was released while a renewal was %s was told to be lost", n.what)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	if fault == "" && !s.free(other, "key") {
		fault = fmt.Sprintf("a lock that was released while a renewal was %s is not free", n.what)
	}
	return fault
}
