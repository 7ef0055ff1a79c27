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

// everyLock opens each lock with three databases of one server; most locks use only the first.
var everyLock = map[string]three{
	"handoff": fencing(handoff.New), "cohort": fencing(handoff.NewCohort), "fenced": fencing(redisson.NewFenced),
	"spin": onFirst(polled.NewSpin), "pubsub": onFirst(redisson.NewPubSub), "fair": onFirst(redisson.NewFair),
	"redisson-spin": onFirst(redisson.NewSpin), "redlock": redlock.New[redis.UniversalClient],
	"semaphore": onFirst(func(c redis.UniversalClient, o ...lock.Option) (*lock.Locker, error) {
		return semaphore.New(c, 1, o...)
	}),
}

// brief sets short timeouts, for tests in which no server answers.
const brief = time.Second / 4

// onEvery tries each lock at the address, with clients that wait for an answer for the given time.
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

// on is onEvery for one lock.
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

// No constructor takes a client that is nil, whatever its type.
func TestNilClients(t *testing.T) {
	for name, open := range everyLock {
		for _, none := range redistest.NoClients() {
			if locker, err := open([]redis.UniversalClient{none, none, none}); err == nil || locker != nil {
				t.Errorf("%s: %v, %v", name, locker, err)
			}
		}
	}
}

// Acquire returns ErrHeld when Wait ends while another client holds the lock. A wait may also end during a command,
// so the test may need more than one attempt.
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

// Acquire does not return ErrHeld when Redis does not answer: a service must report this as a failure, not as a busy
// lock.
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

// If no server listens at the address, errors.Is finds the transport's error.
func TestWaitForNobody(t *testing.T) {
	onEvery(t, "127.0.0.1:1", time.Minute, func(t *testing.T, locker *lock.Locker) {
		_, err := locker.Acquire(t.Context(), "key", lock.Wait(time.Minute))
		refused := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, lock.ErrNoQuorum)
		if !refused || errors.Is(err, lock.ErrHeld) {
			t.Errorf("while no server listens: %v, want ECONNREFUSED", err)
		}
	})
}

// The loss of a lease is reported at its end although the renewal under way gets no answer.
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
