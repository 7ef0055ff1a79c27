package lock_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/strategies/redlock"
	"github.com/lockbench/lockbench/strategies/semaphore"
)

func plain(l *lock.FencedLocker, err error) (*lock.Locker, error) {
	if err != nil {
		return nil, err
	}
	return l.Locker, nil
}

// everyLock opens each lock on three databases of a server, of which most need one.
var everyLock = map[string]func(c []redis.UniversalClient) (*lock.Locker, error){
	"handoff":   func(c []redis.UniversalClient) (*lock.Locker, error) { return plain(handoff.New(c[0])) },
	"cohort":    func(c []redis.UniversalClient) (*lock.Locker, error) { return plain(cohort.New(c[0])) },
	"fenced":    func(c []redis.UniversalClient) (*lock.Locker, error) { return plain(redisson.NewFenced(c[0])) },
	"spin":      func(c []redis.UniversalClient) (*lock.Locker, error) { return polled.NewSpin(c[0]) },
	"pubsub":    func(c []redis.UniversalClient) (*lock.Locker, error) { return redisson.NewPubSub(c[0]) },
	"fair":      func(c []redis.UniversalClient) (*lock.Locker, error) { return redisson.NewFair(c[0]) },
	"redlock":   func(c []redis.UniversalClient) (*lock.Locker, error) { return redlock.New(c) },
	"semaphore": func(c []redis.UniversalClient) (*lock.Locker, error) { return semaphore.New(c[0], 1) },
}

// onEvery tries each lock at that address.
func onEvery(t *testing.T, address string, try func(*testing.T, *lock.Locker)) {
	for name, open := range everyLock {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var clients []redis.UniversalClient
			for database := range 3 {
				client := redis.NewClient(&redis.Options{Addr: address, DB: database, MaxRetries: -1, ReadTimeout: time.Second / 4})
				defer func() { _ = client.Close() }()
				clients = append(clients, client)
			}
			locker, err := open(clients)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locker.Close() }()
			try(t, locker)
		})
	}
}

// The end of Wait is ErrHeld where another has the lock. A wait may also end during a command, so that
// it takes more than one to see it.
func TestWaitForAHolder(t *testing.T) {
	server := redistest.Start(t)
	onEvery(t, server.Addr, func(t *testing.T, locker *lock.Locker) {
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

// It is not where Redis does not answer: a service that is asked then is out of order, not busy.
func TestWaitForRedis(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	onEvery(t, silent.Addr().String(), func(t *testing.T, locker *lock.Locker) {
		if _, err := locker.Acquire(t.Context(), "key", lock.Wait(100*time.Millisecond)); err == nil || errors.Is(err, lock.ErrHeld) {
			t.Errorf("while Redis is silent: %v", err)
		}
	})
}

// Where nobody listens the transport's error can be found.
func TestWaitForNobody(t *testing.T) {
	onEvery(t, "127.0.0.1:1", func(t *testing.T, locker *lock.Locker) {
		_, err := locker.Acquire(t.Context(), "key", lock.Wait(time.Minute))
		refused := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, lock.ErrNoQuorum)
		if !refused || errors.Is(err, lock.ErrHeld) {
			t.Errorf("while nobody listens: %v, want that the connection is refused", err)
		}
	})
}
