package trial

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/lock"
)

// Service tests a lock through its constructor, as a service has it, on that many servers. A
// semaphore has one permit, which runs out.
func Service(t *testing.T, servers int, construct func([]redis.UniversalClient, ...lock.Option) (*lock.Locker, error)) {
	for name, check := range map[string]func(*testing.T, service){
		"TTLs reach Redis":         serviceTTLs,
		"waits end":                serviceWaits,
		"WithLock ends with it":    serviceWithLock,
		"the watchdog renews":      serviceWatchdog,
		"faults are told together": serviceFaults,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service{t: t, construct: construct}
			for range servers {
				server := redistest.Start(t)
				s.clients = append(s.clients, server.Node(t).Client)
				s.outside = append(s.outside, server.Client(t))
			}
			check(t, s)
		})
	}
}

type service struct {
	t         *testing.T
	construct func([]redis.UniversalClient, ...lock.Option) (*lock.Locker, error)
	clients   []redis.UniversalClient
	outside   []*redis.Client
}

// open makes a Locker of "trial:" keys.
func (s service) open(options ...lock.Option) *lock.Locker {
	s.t.Helper()
	locker, err := s.construct(s.clients, append(options, lock.Prefix("trial:"))...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := locker.Close(); err != nil {
			s.t.Errorf("close: %v", err)
		}
	})
	return locker
}

// acquire must succeed.
func (s service) acquire(locker *lock.Locker, options ...lock.CallOption) *lock.Lease {
	s.t.Helper()
	lease, err := locker.Acquire(s.t.Context(), "key", append(options, lock.Wait(patience))...)
	if err != nil {
		s.t.Fatal(err)
	}
	return lease
}

func (s service) release(lease *lock.Lease) {
	s.t.Helper()
	if err := lease.Release(context.Background()); err != nil {
		s.t.Errorf("release: %v", err)
	}
}

// empty deletes all keys, as somebody may who thinks that the lock is stuck.
func (s service) empty() {
	for _, outside := range s.outside {
		if err := outside.FlushAll(s.t.Context()).Err(); err != nil {
			s.t.Error(err)
		}
	}
}

// commands returns how many scripts and SETs the servers have run so far. Every renewal is
// one of them.
func (s service) commands() (n int64) {
	for _, outside := range s.outside {
		n += granting(s.t, outside)
	}
	return n
}

// The constructor's TTL holds for all calls but those that give another.
func serviceTTLs(t *testing.T, s service) {
	locker := s.open(lock.TTL(10 * time.Minute))
	for _, test := range []struct {
		ttl     time.Duration
		options []lock.CallOption
	}{
		{10 * time.Minute, nil}, {20 * time.Hour, []lock.CallOption{lock.TTL(20 * time.Hour)}}, {10 * time.Minute, nil},
	} {
		before := time.Now()
		lease := s.acquire(locker, test.options...)
		if until := lease.ValidUntil(); until.Before(before.Add(test.ttl-test.ttl/50)) || until.After(time.Now().Add(test.ttl)) {
			t.Errorf("a lease of %v is valid for %v", test.ttl, until.Sub(before))
		}
		for _, outside := range s.outside {
			if kept, least := left(t, outside), test.ttl-time.Since(before)-10*time.Millisecond; kept < least || kept > test.ttl {
				t.Errorf("Redis keeps a lease of %v for %v", test.ttl, kept)
			}
		}
		if err := lease.Extend(t.Context(), 30*time.Hour); err != nil {
			t.Errorf("extend: %v", err)
		}
		if left := time.Until(lease.ValidUntil()); left < 29*time.Hour || left > 30*time.Hour {
			t.Errorf("extended by 30h it is valid for %v", left)
		}
		s.release(lease)
	}
}

// Wait and the context end a wait, each with its own error; TryAcquire does not wait.
func serviceWaits(t *testing.T, s service) {
	holder, waiter := s.open(lock.TTL(time.Hour)), s.open(lock.TTL(time.Hour))
	lease := s.acquire(holder)
	Calm(t, func(times int) string {
		_, err := waiter.Acquire(t.Context(), "key", lock.Wait(time.Duration(times)*50*time.Millisecond))
		var unanswered *net.OpError
		if errors.As(err, &unanswered) { // it waited for Redis then, not for the holder
			return err.Error()
		}
		if !errors.Is(err, lock.ErrHeld) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end of its Wait an Acquire returned %v, want ErrHeld", err)
		}
		return ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := waiter.Acquire(ctx, "key", lock.Wait(time.Hour)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lock.ErrHeld) {
		t.Errorf("at the end of its context an Acquire returned %v, want DeadlineExceeded", err)
	}
	if _, err := waiter.TryAcquire(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a TryAcquire returned %v, want ErrHeld", err)
	}
	got := make(chan error)
	go func() {
		next, err := waiter.Acquire(context.Background(), "key", lock.Wait(patience))
		if err == nil {
			err = next.Release(context.Background())
		}
		got <- err
	}()
	s.release(lease)
	if err := <-got; err != nil {
		t.Errorf("a waiter got %v after the release", err)
	}
	if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("a second release returned %v, want ErrNotHeld", err)
	}
}

// The work's context ends when the lease runs out, and with a watchdog soon after its key
// has gone.
func serviceWithLock(t *testing.T, s service) {
	locker := s.open(lock.TTL(short))
	for name, test := range map[string]struct {
		options []lock.CallOption
		lose    func()
	}{
		"ran out":     {nil, func() {}},
		"was deleted": {[]lock.CallOption{lock.Watchdog(), lock.TTL(2 * time.Second)}, s.empty},
	} {
		err := locker.WithLock(t.Context(), "key", func(ctx context.Context) error {
			test.lose()
			select {
			case <-ctx.Done():
			case <-time.After(patience):
				t.Errorf("the lease %s, and the work goes on", name)
			}
			if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrNotHeld) {
				t.Errorf("the lease %s; the context's cause is %v, want ErrNotHeld", name, cause)
			}
			return nil
		}, test.options...)
		if name == "was deleted" && !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("the lease %s; WithLock returned %v, want ErrNotHeld", name, err)
		}
	}
}

// A watchdog keeps a short lease for as long as it is held, and stops with the release.
func serviceWatchdog(t *testing.T, s service) {
	Calm(t, func(times int) string {
		s.empty() // a spoilt play can leave the lock with the other one, for an hour
		ttl := time.Duration(times) * short
		locker, other := s.open(lock.TTL(ttl)), s.open(lock.TTL(time.Hour))
		lease := s.acquire(locker, lock.Watchdog())
		acquired := lease.ValidUntil()
		before := s.commands()
		select {
		case <-lease.Lost():
			return "the watchdog came too late"
		case <-time.After(2*ttl + ttl/6): // between two renewals
		}
		if s.commands() == before || !lease.ValidUntil().After(acquired) {
			t.Error("nothing was renewed")
		}
		if _, err := other.TryAcquire(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) {
			if !time.Now().Before(lease.ValidUntil()) {
				return "the watchdog came too late"
			}
			t.Errorf("it is held, and a TryAcquire returned %v", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			return "the watchdog came too late: " + err.Error()
		}
		before = s.commands()
		time.Sleep(ttl)
		if n := s.commands() - before; n > 0 {
			t.Errorf("%d commands ran after the release", n)
		}
		if lost(lease) {
			t.Error("it was released, and is lost")
		}
		s.release(s.acquire(other))
		return ""
	})
}

func lost(lease *lock.Lease) bool {
	select {
	case <-lease.Lost():
		return true
	default:
		return false
	}
}

func serviceFaults(t *testing.T, s service) {
	if _, err := s.construct(s.clients, lock.TTL(time.Microsecond)); err == nil {
		t.Error("a TTL of 1µs was taken")
	}
	if _, err := s.construct(make([]redis.UniversalClient, len(s.clients)), lock.TTL(time.Minute)); err == nil {
		t.Error("a client that is nil was taken")
	}
	if _, err := s.open().Acquire(t.Context(), "key", lock.TTL(time.Microsecond)); err == nil {
		t.Error("a call's TTL of 1µs was taken")
	}
}
