package semaphore_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/semaphore"
)

func init() { strategies.RegisterStrategy(semaphore.Strategy()) }

// A semaphore with one permit is a lock, so the conformance suite tests it as one.
func TestConformance(t *testing.T) {
	trial.Conform(t, "semaphore", "semaphore:permits=1", "semaphore:expirable=true,permits=1")
	trial.Conform(t, "semaphore:expirable=true")
}

// Two permits are acquired for 1 ms, but they are not expirable. They must not expire.
func TestPlainPermitsNeverExpire(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "semaphore:permits=2", time.Hour)
	termed := p.Locker.(strategies.Termed)
	one, err := termed.AcquireFor(t.Context(), "key", time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	two, err := termed.TryAcquireFor(t.Context(), "key", time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, timed := one.(strategies.Timed); timed {
		t.Error("a permit that never runs out reports an end of its validity")
	}
	time.Sleep(2 * time.Millisecond)
	if _, err := p.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("with both permits held a try returned %v, want ErrHeld", err)
	}
	trial.Release(t, one)
	trial.Release(t, two)
}

func TestInfoFollowsTheOptions(t *testing.T) {
	plain := trial.Variant(t, "semaphore:permits=7").Info()
	if plain.Capacity != 7 || plain.Claims.Recovery || plain.Caveat == "" {
		t.Errorf("7 plain permits are %+v", plain)
	}
	if expirable := trial.Variant(t, "semaphore:expirable=true").Info(); expirable.Capacity != 4 ||
		!expirable.Claims.Recovery || expirable.Caveat != "" {
		t.Errorf("expirable permits are %+v", expirable)
	}
	if err := (semaphore.Options{}).Validate(); err == nil {
		t.Error("a semaphore without permits was accepted")
	}
}

// free returns the number of permits that Redis counts as free.
func free(t testing.TB, outside redis.UniversalClient) int {
	t.Helper()
	n, err := outside.Get(t.Context(), "trial:key").Int()
	if err != nil {
		t.Fatalf("read the semaphore: %v", err)
	}
	return n
}

func TestUncontendedCommands(t *testing.T) {
	for variant, want := range map[string][2]map[string]int{
		"semaphore": {
			{"evalsha": 1, "get": 1, "decr": 1},
			{"evalsha": 1, "exists": 1, "incrby": 1, "publish": 1},
		},
		"semaphore:expirable=true": {
			{"evalsha": 1, "get": 1, "zremrangebyscore": 1, "decr": 1, "zadd": 1},
			{"evalsha": 1, "zscore": 1, "zrem": 1, "incrby": 1, "publish": 1},
		},
	} {
		t.Run(variant, func(t *testing.T) {
			server := redistest.Start(t)
			p := trial.Start(t, server, variant, time.Minute)
			trial.Release(t, p.Acquire(t, "key")) // opens the pool's connection
			outside := server.Client(t)
			var lease strategies.Lease
			if acquired := locktest.Calls(t, outside, func() { lease = p.Acquire(t, "key") }); !maps.Equal(acquired,
				want[0]) {
				t.Errorf("an acquire ran %v, want %v", acquired, want[0])
			}
			if released := locktest.Calls(t, outside, func() { trial.Release(t, lease) }); !maps.Equal(released,
				want[1]) {
				t.Errorf("a release ran %v, want %v", released, want[1])
			}
		})
	}
}

// A release must wake as many waiters of a process as its message says permits are free.
func TestReleaseWakesOneWaiterPerPermit(t *testing.T) {
	const permits, waiters = 2, 6
	server := redistest.Start(t)
	outside := server.Client(t)
	holder := trial.Start(t, server, "semaphore:permits=2", time.Minute)
	leases := []strategies.Lease{holder.Acquire(t, "key"), holder.Acquire(t, "key")}
	p := trial.Start(t, server, "semaphore:permits=2", time.Minute)
	parked := trial.Park(t, waiters, p)
	for i := range waiters {
		trial.Release(t, leases[i])
		leases = append(leases, parked.Next(t))
	}
	if counts := p.Counts(); counts.Useful != waiters || counts.Futile != 0 || counts.Attempts != 3*waiters {
		t.Errorf("%+v for %d waiters woken one by one, want one useful wake-up for each", counts, waiters)
	}
	// The test releases two permits with one message, as a client of another library may do.
	parked = trial.Park(t, waiters, p)
	outside.IncrBy(t.Context(), "trial:key", permits)
	outside.Publish(t.Context(), "redisson_sc:{trial:key}", permits)
	leases = append(leases, parked.Next(t), parked.Next(t))
	if counts := p.Counts(); counts.Useful != waiters+permits || counts.Futile != 0 {
		t.Errorf("%+v, want exactly two waiters woken, which get the permits", counts)
	}
	for _, lease := range leases[len(leases)-4:] {
		trial.Release(t, lease)
	}
	for range waiters - permits {
		trial.Release(t, parked.Next(t))
	}
}

// The value, the channel and the messages must have the format that Redisson reads.
func TestWireFormat(t *testing.T) {
	for key, channel := range map[string]string{
		"key":    "redisson_sc:{trial:key}",
		"{a}key": "redisson_sc:trial:{a}key",
	} {
		t.Run(key, func(t *testing.T) {
			server := redistest.Start(t)
			outside := server.Client(t)
			listener := outside.Subscribe(t.Context(), channel)
			defer func() { _ = listener.Close() }()
			if _, err := listener.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			told := func(want string) {
				t.Helper()
				reply, err := listener.ReceiveTimeout(t.Context(), 20*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				if message, ok := reply.(*redis.Message); !ok || message.Payload != want {
					t.Errorf("the message is %v, want %q", reply, want)
				}
			}
			value := func(want string) {
				t.Helper()
				if got := outside.Get(t.Context(), "trial:"+key).Val(); got != want {
					t.Errorf("the semaphore is %q, want %q", got, want)
				}
			}
			p := trial.Start(t, server, "semaphore:permits=3", time.Minute)
			first := p.Acquire(t, key)
			told("2") // it has just been set up
			second := p.Acquire(t, key)
			value("1")
			if ttl := outside.PTTL(t.Context(), "trial:"+key).Val(); ttl != -1 {
				t.Errorf("the semaphore has a TTL: %v", ttl)
			}
			trial.Release(t, first)
			told("2")
			trial.Release(t, second)
			told("3")
			value("3")
			if n := outside.DBSize(t.Context()).Val(); n != 1 {
				t.Errorf("there are %d keys, want the semaphore alone", n)
			}
		})
	}
}

func TestPrepareSetsUpOnce(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	outside.Set(t.Context(), "trial:set", 9, 0)
	p := trial.Start(t, server, "semaphore", time.Minute)
	if err := p.Locker.(strategies.Preparer).Prepare(t.Context(), []string{"key", "set"}); err != nil {
		t.Fatal(err)
	}
	if n := free(t, outside); n != 4 {
		t.Errorf("the semaphore was set up with %d permits, want 4", n)
	}
	if got := outside.Get(t.Context(), "trial:set").Val(); got != "9" {
		t.Errorf("a semaphore that existed before has %s permits, want its own 9", got)
	}
}

// The holder of a permit that does not expire dies. The permit must stay taken. A second release of the same permit
// must return ErrNotHeld and not free another permit.
func TestDeadHolderLeaksItsPermit(t *testing.T) {
	const ttl = 20 * time.Millisecond
	server := redistest.Start(t)
	outside := server.Client(t)
	dead := trial.Start(t, server, "semaphore:permits=2", ttl)
	dead.Acquire(t, "key")
	lease := dead.Acquire(t, "key")
	trial.Release(t, lease)
	if err := lease.Release(t.Context()); err != strategies.ErrNotHeld {
		t.Errorf("a second release returned %v, want ErrNotHeld", err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	alive := trial.Start(t, server, "semaphore:permits=2", ttl)
	lease = alive.Acquire(t, "key")
	ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
	defer cancel()
	if _, err := alive.Locker.Acquire(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the dead holder's permit was granted again (%v)", err)
	}
	trial.Release(t, lease)
	if n := free(t, outside); n != 1 {
		t.Errorf("%d permits are free, want 1, because the other holder died", n)
	}
}
