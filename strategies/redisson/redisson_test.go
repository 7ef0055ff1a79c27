package redisson_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/redisson"
)

func TestMain(m *testing.M) {
	poll.ManyAtATime()
	m.Run()
}

func init() { strategies.RegisterStrategy(redisson.Strategies()...) }

func TestConformance(t *testing.T) {
	// The first of these variants is always tested. The others share its scripts and leases, so package extent decides
	// when they are tested.
	trial.Conform(t, "pubsub", "pubsub:watchdog=false",
		"pubsub-broadcast", "redisson-spin", "redisson-spin:watchdog=false")
	trial.Conform(t, "fair")
	trial.Conform(t, "fenced")
}

// channel is the channel on which releases of the lock trial:key are published.
const channel = "redisson_lock__channel:{trial:key}"

// begin starts a server, and a process that runs variant on it. The returned client is for inspecting and changing the
// server.
func begin(t testing.TB, variant string, ttl time.Duration) (*redistest.Server, redis.UniversalClient, trial.Process) {
	t.Helper()
	server := redistest.Start(t)
	return server, server.Client(t), trial.Start(t, server, variant, ttl)
}

func nothingLeft(t testing.TB, outside redis.UniversalClient) {
	t.Helper()
	if left := outside.Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// listen subscribes to pattern. The returned function waits for the next message and returns it.
func listen(t testing.TB, outside redis.UniversalClient, pattern string) (heard func() *redis.Message) {
	t.Helper()
	listener := outside.PSubscribe(t.Context(), pattern)
	t.Cleanup(func() { _ = listener.Close() })
	if _, err := listener.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() *redis.Message {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		message, err := listener.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return message
	}
}

// A Redisson client holds the lock. The test releases it as Redisson does, by deleting the key and publishing a
// message. The waiter must get the lock.
func TestForeignHolderReleases(t *testing.T) {
	for _, kind := range []string{"pubsub", "fair"} {
		t.Run(kind, func(t *testing.T) {
			_, outside, p := begin(t, kind, time.Hour)
			hold(t, outside, time.Hour)
			parked, tells := trial.Park(t, 1, p), channel
			if kind == "fair" {
				tells = wakeChannelPrefix + queued(t, outside)[0]
			}
			outside.Del(t.Context(), lockKey)
			outside.Publish(t.Context(), tells, "0")
			trial.Release(t, parked.Next(t))
		})
	}
}

func TestUncontendedCommands(t *testing.T) {
	type commands = map[string]int
	plain := commands{"evalsha": 1, "hexists": 1, "hincrby": 1, "del": 1, "publish": 1}
	for kind, want := range map[string]struct{ acquire, release commands }{
		"pubsub":           {commands{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1}, plain},
		"pubsub-broadcast": {commands{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1}, plain},
		"fenced":           {commands{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1, "incr": 1}, plain},
		"redisson-spin": {
			commands{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1},
			commands{"evalsha": 1, "hexists": 1, "hincrby": 1, "del": 1},
		},
		"fair": {
			commands{
				"evalsha": 1, "lindex": 1, "exists": 1, "lpop": 1, "zrem": 1, "zrange": 1, "hincrby": 1, "pexpire": 1,
			},
			commands{"evalsha": 1, "lindex": 1, "exists": 1, "hexists": 1, "hincrby": 1, "del": 1},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			_, outside, p := begin(t, kind, time.Minute)
			trial.Release(t, p.Acquire(t, "key")) // opens the pool's connection
			var lease strategies.Lease
			acquired := locktest.Calls(t, outside, func() { lease = p.Acquire(t, "key") })
			if !maps.Equal(acquired, want.acquire) {
				t.Errorf("an acquire ran %v, want %v", acquired, want.acquire)
			}
			released := locktest.Calls(t, outside, func() { trial.Release(t, lease) })
			if !maps.Equal(released, want.release) {
				t.Errorf("a release ran %v, want %v", released, want.release)
			}
		})
	}
}

// redisson-spin must store a lock in the format of RLock, so pubsub and redisson-spin must exclude each other. pubsub
// is the reference, because it has been tested against Redisson.
func TestSpinWireFormat(t *testing.T) {
	server, outside, spinning := begin(t, "redisson-spin", time.Minute)
	told := trial.Start(t, server, "pubsub", time.Minute)
	lease := spinning.Acquire(t, "key")
	hash := outside.HGetAll(t.Context(), lockKey).Val()
	owners := slices.Collect(maps.Keys(hash))
	if len(hash) != 1 || hash[owners[0]] != "1" || !regexp.MustCompile(`^[0-9a-f-]+:\d+$`).MatchString(owners[0]) {
		t.Errorf("the lock is %v", hash)
	}
	if _, err := told.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("pubsub got what redisson-spin holds: %v", err)
	}
	trial.Release(t, lease)
	lease = told.Acquire(t, "key")
	parked := trial.Park(t, 2, spinning)
	trial.Release(t, lease)
	trial.Release(t, parked.Next(t))
	trial.Release(t, parked.Next(t))
	nothingLeft(t, outside)
}
