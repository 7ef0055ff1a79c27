package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/strategies/redlock"
	"github.com/lockbench/lockbench/strategies/semaphore"
)

type (
	one   = func(redis.UniversalClient, ...lock.Option) (*lock.Locker, error)
	three = func([]redis.UniversalClient, ...lock.Option) (*lock.Locker, error)
)

func onFirst(open one) three {
	return func(c []redis.UniversalClient, o ...lock.Option) (*lock.Locker, error) { return open(c[0], o...) }
}

func fencing(open func(redis.UniversalClient, ...lock.Option) (*lock.FencedLocker, error)) three {
	return onFirst(func(c redis.UniversalClient, o ...lock.Option) (*lock.Locker, error) {
		l, err := open(c, o...)
		if err != nil {
			return nil, err
		}
		return l.Locker, nil
	})
}

// everyLock maps the name of each lock to its constructor. The tests pass three clients, one for each of three
// databases of a server. Only redlock uses more than the first client.
var everyLock = map[string]three{
	"handoff": fencing(handoff.New), "cohort": fencing(handoff.NewCohort), "fenced": fencing(redisson.NewFenced),
	"spin": onFirst(polled.NewSpin), "pubsub": onFirst(redisson.NewPubSub), "fair": onFirst(redisson.NewFair),
	"redisson-spin": onFirst(redisson.NewSpin), "redlock": redlock.New[redis.UniversalClient],
	"semaphore": onFirst(func(c redis.UniversalClient, o ...lock.Option) (*lock.Locker, error) {
		return semaphore.New(c, 1, o...)
	}),
}

// brief is a ReadTimeout for tests in which no server replies. It is short, so that these tests end soon.
const brief = time.Second / 4

// onEvery runs a parallel subtest for each lock in everyLock. It opens the lock on the server at address with the given
// options, and calls try with it. answer is the ReadTimeout of the clients.
func onEvery(
	t *testing.T, address string, answer time.Duration, try func(*testing.T, *lock.Locker), options ...lock.Option,
) {
	for name := range everyLock {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, name, address, answer, func(locker *lock.Locker) { try(t, locker) }, options...)
		})
	}
}

// on opens the lock name on the server at address with the given options, calls try with it, and closes it. answer is
// the ReadTimeout of the clients.
func on(
	t *testing.T, name, address string, answer time.Duration, try func(*lock.Locker), options ...lock.Option,
) {
	t.Helper()
	var clients []redis.UniversalClient
	for database := range 3 {
		clients = append(clients, redistest.Dial(t,
			fmt.Sprintf("redis://%s/%d?max_retries=-1&read_timeout=%v", address, database, answer)))
	}
	locker, err := everyLock[name](clients, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locker.Close() }()
	try(locker)
}

// Every constructor must return an error if its client is nil or a typed nil pointer.
func TestNilClients(t *testing.T) {
	for name, open := range everyLock {
		for _, none := range redistest.NoClients() {
			if locker, err := open([]redis.UniversalClient{none, none, none}); err == nil || locker != nil {
				t.Errorf("%s: %v, %v", name, locker, err)
			}
		}
	}
}

// Acquire must return ErrHeld when the time of Wait passes while another client holds the lock. If that happens during
// a command, Acquire returns another error, so the test repeats the attempt.
func TestWaitForAHolder(t *testing.T) {
	server := redistest.Start(t)
	onEvery(t, server.Addr, brief, func(t *testing.T, locker *lock.Locker) {
		key := t.Name()
		held, err := locker.Acquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "a wait ends with ErrHeld", func() bool {
			_, err := locker.Acquire(t.Context(), key, lock.Wait(200*time.Millisecond))
			return errors.Is(err, lock.ErrHeld)
		})
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Redis does not reply before the time of Wait has passed. Acquire must return an error other than ErrHeld, because a
// service must tell a failure from a busy lock.
func TestWaitForRedis(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the listener never accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	onEvery(t, silent.Addr().String(), brief, func(t *testing.T, locker *lock.Locker) {
		_, err := locker.Acquire(t.Context(), "key", lock.Wait(100*time.Millisecond))
		if err == nil || errors.Is(err, lock.ErrHeld) {
			t.Errorf("while Redis is silent: %v", err)
		}
	})
}

// No server listens at the address. Acquire must return an error that wraps ECONNREFUSED or, for a quorum, ErrNoQuorum.
func TestWaitWithoutServer(t *testing.T) {
	onEvery(t, "127.0.0.1:1", time.Minute, func(t *testing.T, locker *lock.Locker) {
		_, err := locker.Acquire(t.Context(), "key", lock.Wait(time.Minute))
		refused := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, lock.ErrNoQuorum)
		if !refused || errors.Is(err, lock.ErrHeld) {
			t.Errorf("while no server listens: %v, want ECONNREFUSED", err)
		}
	})
}

// Redis stops replying while the watchdog renews the lease. The context that WithLock passes to its function must still
// end when the lease expires.
func TestLostWhileRedisIsSilent(t *testing.T) {
	for name := range everyLock {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			const ttl = 1500 * time.Millisecond
			on(t, name, server.Addr, 8*time.Second, func(locker *lock.Locker) {
				err := locker.WithLock(t.Context(), "key", func(ctx context.Context) error {
					server.Pause()
					defer server.Resume()
					paused := time.Now()
					<-ctx.Done()
					if took := time.Since(paused); took > ttl+time.Second {
						t.Errorf("the context ended %v after Redis was paused, the TTL is %v", took, ttl)
					}
					return context.Cause(ctx)
				}, lock.Watchdog(), lock.TTL(ttl))
				if !errors.Is(err, lock.ErrNotHeld) {
					t.Errorf("WithLock returned %v, want the loss", err)
				}
			})
		})
	}
}
