package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	ours "github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/polled"
)

// others are ways in which code without handoff's protocol takes the lock: it stores a string under the key. Each
// function acquires the lock and returns the function that releases it.
var others = map[string]func(context.Context, *redis.Client) (release func() error, err error){
	"redsync": func(ctx context.Context, client *redis.Client) (func() error, error) {
		mutex := redsync.New(goredis.NewPool(client)).NewMutex(lock, redsync.WithExpiry(time.Hour))
		return func() error {
			if ok, err := mutex.UnlockContext(ctx); !ok {
				return fmt.Errorf("the lock was not unlocked: %w", err)
			}
			return nil
		}, mutex.LockContext(ctx)
	},
	"redislock": func(ctx context.Context, client *redis.Client) (func() error, error) {
		held, err := redislock.Obtain(ctx, client, lock, time.Hour, nil)
		return func() error { return held.Release(ctx) }, err
	},
	"spin": func(ctx context.Context, client *redis.Client) (func() error, error) {
		locker, err := polled.NewSpin(client, ours.Prefix("trial:"), ours.TTL(time.Hour))
		if err != nil {
			return nil, err
		}
		held, err := locker.Acquire(ctx, "key")
		return func() error { return errors.Join(held.Release(ctx), locker.Close()) }, err
	},
	"a string without a TTL": func(ctx context.Context, client *redis.Client) (func() error, error) {
		return func() error { return client.Del(ctx, lock).Err() }, client.Set(ctx, lock, "mine", 0).Err()
	},
}

// While another library holds a lock, waiters must not change the lock's value: the library compares the value when it
// releases the lock. After this release, a waiter must get the lock.
func TestLockOfAnotherLibrary(t *testing.T) {
	t.Parallel()
	for name, take := range others {
		t.Run(name, func(t *testing.T) {
			onOne(t, every, func(t *testing.T, server *redistest.Server, variant string) {
				a, b := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
				release, err := take(t.Context(), lookAt(t, server))
				if err != nil {
					t.Fatal(err)
				}
				q := newQueue(t, server)
				value := q.server.Get(t.Context(), lock).Val()
				isHeld(t, a)
				q.join("a1", a)
				q.join("b1", b)
				q.server.ConfigResetStat(t.Context())
				poll.Until(t, "the waiter checks whether the lock is free", func() bool {
					return strings.Contains(q.server.Info(t.Context(), "commandstats").Val(), "cmdstat_lpos:")
				})
				if now := q.server.Get(t.Context(), lock).Val(); now != value {
					t.Errorf("the lock was %q and is %q", value, now)
				}
				if err := release(); err != nil {
					t.Errorf("its release: %v", err)
				}
				trial.Release(t, q.turns(q.next("a1"), "b1"))
				q.nothingLeft(a, b)
			})
		})
	}
}

// If the key has a type other than string, Acquire and TryAcquire return an error that names the key, and they do not
// change the key.
func TestKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	for _, variant := range both {
		server := redistest.Start(t)
		p, client := trial.Start(t, server, variant, time.Hour), lookAt(t, server)
		client.HSet(t.Context(), lock, "owner", 1)
		_, tried := locker(p).TryAcquire(t.Context(), "key")
		_, asked := locker(p).Acquire(t.Context(), "key")
		for _, err := range []error{tried, asked} {
			if err == nil || errors.Is(err, strategies.ErrHeld) ||
				!strings.Contains(err.Error(), `"trial:key", or its queue, belongs to another program`) {
				t.Errorf("%s: it returned %v", variant, err)
			}
		}
		fields, keys := client.HGetAll(t.Context(), lock).Val(), client.DBSize(t.Context()).Val()
		if len(fields) != 1 || keys != 1 {
			t.Errorf("%s: the key has %v, and there are %d", variant, fields, keys)
		}
	}
}
