package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

const (
	// hangingRead is the ReadTimeout of clients whose servers hang: far longer than a call may take.
	hangingRead = 8 * time.Second
	// hangingCall is when the context of a call ends whose servers hang.
	hangingCall = 300 * time.Millisecond
	// hangingLimit is how long after its context, or after the end of a lease, a call or the report of a loss may come.
	// A tenth of it is usual.
	hangingLimit = 2 * time.Second
	// refusedFor is how long servers refuse a release.
	refusedFor = 50 * time.Millisecond
)

// defaulting returns a client with go-redis's defaults, which does not end commands with their contexts, but for a
// longer ReadTimeout.
func defaulting(o *redis.UniversalOptions) redis.UniversalClient {
	o.ContextTimeoutEnabled, o.ReadTimeout, o.MaxRetries = false, hangingRead, 0
	return dial(o)
}

// hang stops the servers until resume is called, in any case until the end of the check.
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

// canHang ends a check that needs servers that hang where it cannot be tried.
func (s *stage) canHang() {
	if s.fixture.Pause == nil || s.fixture.Resume == nil {
		s.notTried("the fixture cannot pause and resume its servers")
	}
	s.owned()
}

// owned ends a check that only a library's own code could pass.
func (s *stage) owned() {
	if s.info.BlackBox {
		s.notApplicable("it is an adapter of somebody else's library, which alone could do it")
	}
}

// hangingServer has the servers hang while a client with go-redis's defaults acquires, extends, releases and waits,
// with contexts that end soon. When the servers go on, nothing may stay locked.
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
		s.comesBack(other, key, "servers have hung and go on")
	}
}

// briefly returns acquire with a context that ends after hangingCall.
func (s *stage) briefly(
	acquire func(context.Context, string) (strategies.Lease, error),
) func(context.Context, string) (strategies.Lease, error) {
	return func(_ context.Context, key string) (lease strategies.Lease, err error) {
		err = within(hangingCall, func(ctx context.Context) error { lease, err = acquire(ctx, key); return err })
		return lease, err
	}
}

// endsInTime expects a call to end with its context, without a success.
func (s *stage) endsInTime(w *waiter, what string) {
	switch {
	case !w.within(hangingCall + hangingLimit):
		s.fatalf("servers hang, and %s with a context of %v goes on for %v", what, hangingCall, hangingCall+hangingLimit)
	case w.err == nil:
		s.fatalf("servers hang, and %s succeeds", what)
	case errors.Is(w.err, strategies.ErrNotHeld):
		s.fatalf("servers hang, and %s returned %q", what, w.err)
	}
}

// comesBack expects that all permits can be had soon.
func (s *stage) comesBack(i *instance, key, after string) {
	var leases []strategies.Lease
	for range s.info.Capacity {
		w := s.waiterFor(i, key, i.Acquire)
		if !w.within(s.patience) {
			s.fatalf("%s, and %v later a lock that was given up is not free, with a TTL of %v", after, s.patience, longTTL)
		}
		if w.err != nil {
			s.fatalf("%s, and an acquire returned %q", after, w.err)
		}
		leases = append(leases, w.lease)
	}
	s.release(leases...)
}

// lossInTime has the servers hang while a watchdog renews a lease, and expects the report that the lease is lost.
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
			s.notApplicable("its leases report no loss, or no end")
		}
		lost := watched.Lost()
		time.Sleep(when)
		resume := s.hang()
		s.reports(lost, timed)
		resume()
		_ = within(s.patience, lease.Release)
		s.recovers(i)
		s.comesBack(other, "key", "servers have hung and go on")
	}
}

// reports expects a loss to be reported soon after the lease's end.
func (s *stage) reports(lost <-chan struct{}, lease strategies.Timed) {
	for {
		select {
		case <-lost:
			late := time.Since(lease.ValidUntil()).Round(time.Millisecond)
			s.Logf("a loss was reported %v after the lease's end", late)
			return
		case <-time.After(10 * time.Millisecond):
		}
		if time.Since(lease.ValidUntil()) > hangingLimit {
			s.fatalf("servers hang, and %v after the end of a lease that a watchdog could not renew it is not reported as "+
				"lost", hangingLimit)
		}
	}
}

// refusedRelease has the servers refuse a release for a moment, and has another release come with a context that has
// ended. Neither is repeated by its caller.
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
		s.comesBack(other, "key", "servers have refused a release for a moment")
	}
	leases := s.fill(i, "key")
	ended, end := context.WithCancel(context.Background())
	end()
	_ = leases[0].Release(ended)
	s.release(leases[1:]...)
	s.comesBack(other, "key", "the context of a release had ended")
}
