package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

const (
	// hangingRead is the ReadTimeout of clients whose servers hang. It is far longer than a call is allowed to take.
	hangingRead = 8 * time.Second
	// hangingCall is the timeout of a call's context while the servers hang.
	hangingCall = 300 * time.Millisecond
	// hangingLimit limits two delays: from the end of a context to the return of the call with this context, and from the
	// end of a lease to the report of its loss. Both delays are usually a tenth of this limit.
	hangingLimit = 2 * time.Second
	// refusedFor is how long the servers refuse a release.
	refusedFor = 50 * time.Millisecond
)

// defaulting returns a client with go-redis's default options, under which commands do not end with their contexts.
// Only its ReadTimeout is longer than the default.
func defaulting(o *redis.UniversalOptions) redis.UniversalClient {
	o.ContextTimeoutEnabled, o.ReadTimeout, o.MaxRetries = false, hangingRead, 0
	return dial(o)
}

// hang stops the servers until resume is called or the check ends.
func (s *stage) hang() (resume func()) {
	s.disturb("pause the servers", s.fixture.Pause)
	hangs := true
	resume = func() {
		if hangs {
			hangs = false
			s.disturb("resume the servers", s.fixture.Resume)
		}
	}
	s.Cleanup(func() {
		if hangs {
			_ = s.fixture.Resume()
		}
	})
	return resume
}

// canHang ends the check if the fixture cannot pause its servers, or if the lock is an adapter of a third-party
// library.
func (s *stage) canHang() {
	if s.fixture.Pause == nil || s.fixture.Resume == nil {
		s.notTried("the fixture cannot pause and resume its servers")
	}
	s.owned()
}

// owned ends the check if the lock is an adapter of a third-party library, because only a change in the library could
// make the check pass.
func (s *stage) owned() {
	if s.info.BlackBox {
		s.notApplicable("it is an adapter of a third-party library, and only a change of the library could make it pass")
	}
}

// hangingServer stops the servers while a client with go-redis's defaults acquires, extends, releases and waits with
// contexts that end soon. Each call must end with its context, and no lock may stay taken when the servers continue.
func hangingServer(s *stage) {
	s.canHang()
	s.expiring = true
	s.connect = defaulting
	i, other := s.open(longTTL), s.open(longTTL)
	s.passOn(s.fill(i, "key"), other, "key", func() {}) // this opens their connections
	s.passOn(s.fill(other, "key"), i, "key", func() {})
	own, taken := s.fill(i, "own"), s.fill(other, "taken")
	waiting := s.waiterFor(i, "taken", i.Acquire)
	waiting.parked()
	resume := s.hang()
	s.endsInTime(s.waiterFor(i, "acquired", s.briefly(i.Acquire)), "an acquire")
	if trier, ok := strategies.As[strategies.Trier](i.Locker); ok {
		s.endsInTime(s.waiterFor(i, "tried", s.briefly(trier.TryAcquire)), "a try-lock")
	}
	if extender, ok := strategies.As[strategies.Extender](own[0]); ok {
		s.endsInTime(s.background(i, "own", func(context.Context) error {
			return within(hangingCall, func(ctx context.Context) error { return extender.Extend(ctx, longTTL) })
		}), "an extension")
	}
	s.endsInTime(s.background(i, "own", func(context.Context) error {
		return within(hangingCall, own[0].Release)
	}), "a release")
	time.AfterFunc(hangingCall, waiting.cancel)
	s.endsInTime(waiting, "a wait")
	resume()
	for _, lease := range append(own[1:], taken...) {
		_ = s.again(lease)
	}
	for _, key := range []string{"acquired", "tried", "own", "taken"} {
		s.checkAllPermitsReturn(other, key, "the servers hung and continued")
	}
}

// briefly returns a function for waiterFor that calls acquire with a context that ends after hangingCall.
func (s *stage) briefly(
	acquire func(context.Context, string) (strategies.Lease, error),
) func(context.Context, string) (strategies.Lease, error) {
	return func(_ context.Context, key string) (lease strategies.Lease, err error) {
		err = within(hangingCall, func(ctx context.Context) error { lease, err = acquire(ctx, key); return err })
		return lease, err
	}
}

// endsInTime ends the check with a failure unless the call returns an error within hangingLimit after the end of its
// context.
func (s *stage) endsInTime(w *waiter, what string) {
	switch {
	case !w.within(hangingCall + hangingLimit):
		s.fatalf("while the servers hung, %s with a timeout of %v has not returned after %v", what, hangingCall,
			hangingCall+hangingLimit)
	case w.err == nil:
		s.fatalf("%s succeeded while the servers hung", what)
	case errors.Is(w.err, strategies.ErrNotHeld):
		s.fatalf("while the servers hung, %s returned %q", what, w.err)
	}
}

// checkAllPermitsReturn checks that all permits can be acquired within the patience. A lock that becomes free only at
// the end of its lease fails the check, because longTTL is longer than the patience. after describes the preceding
// fault.
func (s *stage) checkAllPermitsReturn(i *instance, key, after string) {
	var leases []strategies.Lease
	for range s.info.Capacity {
		w := s.waiterFor(i, key, i.Acquire)
		if !w.within(s.patience) {
			s.fatalf("%s; %v later a released lock with a TTL of %v is not free", after, s.patience, longTTL)
		}
		if w.err != nil {
			s.fatalf("%s, and then an acquire returned %q", after, w.err)
		}
		leases = append(leases, w.lease)
	}
	s.release(leases...)
}

// lossInTime stops the servers three times: before, during and after a renewal by the watchdog. Each time, the loss of
// the lease must be reported within hangingLimit after the end of the lease.
func lossInTime(s *stage) {
	s.canHang()
	s.expiring = true
	s.connect = defaulting
	const ttl = 4 * shortTTL
	i, other := s.open(ttl), s.open(longTTL)
	for _, when := range []time.Duration{ttl / 20, ttl / 3, ttl / 2} { // before a renewal, during one, after one
		lease := s.fill(i, "key")[0]
		watched, ok := strategies.As[strategies.Watched](lease)
		timed, isTimed := strategies.As[strategies.Timed](lease)
		if !ok || !isTimed {
			s.notApplicable("its leases do not report both their loss and the end of their validity")
		}
		lost := watched.Lost()
		time.Sleep(when)
		resume := s.hang()
		s.reports(lost, timed)
		resume()
		_ = within(s.patience, lease.Release)
		s.recovers(i)
		s.checkAllPermitsReturn(other, "key", "the servers hung and continued")
	}
}

// reports checks that the loss of the lease is reported at most hangingLimit after the end of the lease.
func (s *stage) reports(lost <-chan struct{}, lease strategies.Timed) {
	for {
		select {
		case <-lost:
			late := time.Since(lease.ValidUntil()).Round(time.Millisecond)
			s.Logf("the loss was reported %v after the end of the lease", late)
			return
		case <-time.After(10 * time.Millisecond):
		}
		if time.Since(lease.ValidUntil()) > hangingLimit {
			s.fatalf("while the servers hang, a lease that its watchdog cannot renew must be reported as lost, but it is not "+
				"%v after its end", hangingLimit)
		}
	}
}

// refusedRelease makes the servers refuse a release and, a short time later, accept writes again. Then it calls another
// release with a context that is already done. The caller repeats neither release, so the lock itself must repeat both.
func refusedRelease(s *stage) {
	s.owned()
	i, other := s.open(longTTL), s.open(longTTL)
	s.release(s.acquire(i, "key")) // this opens its connections
	for range 2 {
		leases := s.fill(i, "key")
		accept := s.set("min-replicas-to-write", "9")
		_ = within(s.patience, leases[0].Release)
		time.Sleep(refusedFor)
		accept()
		s.release(leases[1:]...)
		s.checkAllPermitsReturn(other, "key", "the servers refused a release for a moment")
	}
	leases := s.fill(i, "key")
	ended, end := context.WithCancel(context.Background())
	end()
	_ = leases[0].Release(ended)
	s.release(leases[1:]...)
	s.checkAllPermitsReturn(other, "key", "a release was called with a context that was already done")
}
