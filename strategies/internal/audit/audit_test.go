package audit

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func init() {
	strategies.RegisterStrategy(cohort.Strategy())
	strategies.RegisterStrategy(handoff.Strategy())
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // they wait most of the time
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

const (
	prefix = "audit:"
	// patience is how long anything may take that is not lost for good.
	patience = 30 * time.Second
)

// dialer is how a client reaches Redis.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// each runs a test of every lock of ours.
func each(t *testing.T, play func(t *testing.T, name string)) {
	t.Parallel()
	for _, name := range []string{"handoff", "cohort"} {
		t.Run(name, func(t *testing.T) { t.Parallel(); play(t, name) })
	}
}

// open opens one process of a lock, on a client with go-redis's defaults that dials so.
func open(t *testing.T, name, addr string, dial dialer, ttl time.Duration) strategies.Locker {
	t.Helper()
	return openBy(t, name, &redis.UniversalOptions{Addrs: []string{addr}, Dialer: dial}, ttl)
}

// openBy opens one on a client with those options.
func openBy(t *testing.T, name string, options *redis.UniversalOptions, ttl time.Duration) strategies.Locker {
	t.Helper()
	locker, err := tryOpen(t, name, options, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return locker
}

// tryOpen opens one with a TTL that may be refused.
func tryOpen(t *testing.T, name string, options *redis.UniversalOptions, ttl time.Duration) (strategies.Locker, error) {
	t.Helper()
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	node := goredis.Node{Client: client, Options: options}
	locker, err := goredis.Open(trial.Variant(t, name), goredis.Config{
		Nodes: []goredis.Node{node}, Prefix: prefix, TTL: ttl, Probe: &strategies.Probe{},
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := locker.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return locker, nil
}

// acquire must succeed.
func acquire(t *testing.T, locker strategies.Locker) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := locker.Acquire(ctx, "key")
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lease
}

// release gives a lease up and asks again while that ends with an error.
func release(t *testing.T, lease strategies.Lease) error {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := lease.Release(ctx)
		cancel()
		if err == nil || errors.Is(err, strategies.ErrNotHeld) || time.Now().After(end) {
			return err
		}
	}
}

func token(lease strategies.Lease) int64 { return lease.(strategies.Fenced).FencingToken() }

func until(lease strategies.Lease) time.Time { return lease.(strategies.Timed).ValidUntil() }

// book notes who holds the lock, and says when two do, or when a token does not grow.
type book struct {
	t     *testing.T
	pause time.Duration // of waiters after an error, 20 ms if 0

	mu     sync.Mutex
	holder strategies.Lease // nil while there is none
	last   int64
	served int
}

// enter notes a lease that was granted.
func (b *book) enter(who any, lease strategies.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.holder != nil && now.Before(until(b.holder)) && now.Before(until(lease)) {
		b.t.Errorf("overlap: %v got the lock with token %d while it was held with token %d", who, token(lease), token(b.holder))
	}
	if token(lease) <= b.last {
		b.t.Errorf("%v got token %d after %d", who, token(lease), b.last)
	}
	b.holder, b.last = lease, max(b.last, token(lease))
	b.served++
}

// leave notes that a lease is about to be released.
func (b *book) leave(lease strategies.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holder == lease {
		b.holder = nil
	}
}

// waiters have each Locker wait for the lock, hold it for so long and release it.
type waiters struct {
	*book
	all sync.WaitGroup
}

// wait has them wait, each some time after the one before so that all are queued.
func (b *book) wait(hold time.Duration, lockers ...strategies.Locker) *waiters {
	w := &waiters{book: b}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.t.Cleanup(func() { cancel(); w.all.Wait() })
	for n, locker := range lockers {
		w.all.Go(func() {
			for {
				lease, err := locker.Acquire(ctx, "key")
				if err != nil {
					if ctx.Err() != nil {
						b.t.Errorf("waiter %d was never served: %v", n, err)
						return
					}
					time.Sleep(cmp.Or(b.pause, 20*time.Millisecond)) // Redis may be out of reach
					continue
				}
				b.enter(n, lease)
				time.Sleep(hold)
				b.leave(lease)
				_ = release(b.t, lease) // it may have run out meanwhile
				return
			}
		})
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	return w
}
