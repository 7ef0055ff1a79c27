package spin_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/spin"
)

func init() { strategies.RegisterStrategy(spin.Strategy()) }

func TestConformance(t *testing.T) {
	trial.Conform(t, "spin", "spin:backoff=none", "spin:backoff=redisson", "spin:pipeline=true")
}

func open(t testing.TB, config goredis.Config, options spin.Options) *spin.Locker {
	t.Helper()
	locker, err := spin.Open(config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	if err := locker.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return locker
}

func acquire(t testing.TB, locker *spin.Locker) strategies.Lease {
	t.Helper()
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	locker := open(t, trial.Config(t, server), spin.Defaults())
	outside := server.Client(t)
	var lease strategies.Lease
	acquired := locktest.Calls(t, outside, func() { lease = acquire(t, locker) })
	delete(acquired, "hello") // of the pool's first connection
	if want := map[string]int{"set": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() {
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if want := map[string]int{"evalsha": 1, "get": 1, "del": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

func TestWaiterPaysOneSetATry(t *testing.T) {
	server := redistest.Start(t)
	config := trial.Config(t, server)
	options := spin.Options{Backoff: spin.Fixed, Base: 2 * time.Millisecond, Cap: time.Second}
	locker := open(t, config, options)
	lease := acquire(t, locker)
	before := config.Probe.Counts()
	ran := locktest.Calls(t, server.Client(t), func() {
		var waiter sync.WaitGroup
		waiter.Go(func() {
			if _, err := locker.Acquire(t.Context(), "key"); err != nil {
				t.Errorf("acquire: %v", err)
			}
		})
		poll.Until(t, "ten tries", func() bool { return config.Probe.Counts().Attempts-before.Attempts >= 10 })
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		waiter.Wait()
	})
	after := config.Probe.Counts()
	attempts := after.Attempts - before.Attempts
	if int64(ran["set"]) != attempts {
		t.Errorf("%d SETs for %d attempts", ran["set"], attempts)
	}
	if useful, futile := after.Useful-before.Useful, after.Futile-before.Futile; useful != 1 || futile != attempts-2 {
		t.Errorf("%d useful and %d futile wake-ups for %d attempts, want 1 and all but the first and the last", useful, futile, attempts)
	}
}

func TestNewNamesEveryFault(t *testing.T) {
	_, err := spin.Open(goredis.Config{}, spin.Options{Backoff: "linear"})
	if err == nil {
		t.Fatal("no node, no TTL and an unknown backoff were accepted")
	}
	for _, want := range []string{"nodes", "TTL", `"linear"`, "base", "cap"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// The cost of the strategy over its two bare commands, one caller: the ratio of
// the two is what to look at.
func BenchmarkSpin(b *testing.B) {
	server := redistest.Start(b)
	b.Run("strategy", func(b *testing.B) {
		locker := open(b, trial.Config(b, server), spin.Defaults())
		b.ReportAllocs()
		for b.Loop() {
			lease, err := locker.Acquire(context.Background(), "key")
			if err != nil {
				b.Fatal(err)
			}
			if err := lease.Release(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		client := server.Node(b).Client
		script := redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
		b.ReportAllocs()
		for b.Loop() {
			if err := client.SetNX(context.Background(), "trial:key", "token", time.Minute).Err(); err != nil {
				b.Fatal(err)
			}
			if err := script.Run(context.Background(), client, []string{"trial:key"}, "token").Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestTriesEndAnAcquire(t *testing.T) {
	server := redistest.Start(t)
	config := trial.Config(t, server)
	options := spin.Defaults()
	options.Tries, options.Cap = 3, time.Millisecond
	_ = acquire(t, open(t, config, spin.Defaults()))
	before := config.Probe.Counts().Attempts
	if _, err := open(t, config, options).Acquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("after three tries: %v", err)
	}
	if n := config.Probe.Counts().Attempts - before; n != 3 {
		t.Errorf("it made %d tries", n)
	}
}

func TestShortenedUnheard(t *testing.T) { trial.ShortenedUnheard(t, "spin") }
