// Package docs tests the pages in this directory.
package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/lock"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/strategies/redlock"
)

// Each Go snippet in MIGRATING.md must be a verbatim copy of a function body in this file, because TestMigrations runs
// these functions.
func TestMigratingSnippets(t *testing.T) {
	page, err := os.ReadFile("MIGRATING.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("migrating_test.go")
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(snippets) != len(migrations) {
		t.Errorf("the page has %d snippets of Go, and %d are run", len(snippets), len(migrations))
	}
	for _, snippet := range snippets {
		if !strings.Contains(string(source), indented(snippet[1])) {
			t.Errorf("no test runs this snippet:\n%s", snippet[1])
		}
	}
}

// indented returns a snippet as the body of a Go function: with one more tab on each line, and in braces.
func indented(snippet string) string {
	lines := strings.Split(strings.TrimRight(snippet, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "\t" + line
		}
	}
	return "{\n" + strings.Join(lines, "\n") + "\n}\n"
}

type migration = func(ctx context.Context, clients []redis.UniversalClient) error

// one adapts a snippet with a single client to the signature of a snippet with several clients.
func one(snippet func(context.Context, redis.UniversalClient) error) migration {
	return func(ctx context.Context, clients []redis.UniversalClient) error { return snippet(ctx, clients[0]) }
}

// migrations maps the name of each snippet to the function that contains it.
var migrations = map[string]migration{
	"redislock":          one(fromRedislock),
	"redislock: handoff": one(toHandoff),
	"redsync":            one(fromRedsync),
	"redsync: watchdog":  one(toWithLock),
	"redsync: redlock":   toRedlock,
	"Redisson: getLock":  one(fromGetLock),
	"Redisson: fenced":   one(fromGetFencedLock),
	"redis-py: lock":     one(fromRedisPy),
}

func TestMigrations(t *testing.T) {
	var clients []redis.UniversalClient
	for range 3 {
		clients = append(clients, redistest.Start(t).Client(t))
	}
	for name, run := range migrations {
		t.Run(name, func(t *testing.T) {
			shipped = 0
			if err := run(t.Context(), clients); err != nil {
				t.Error(err)
			}
			if shipped != 1 {
				t.Errorf("the work was done %d times", shipped)
			}
			// Run the snippet again. It fails unless the first run released the lock.
			if err := run(t.Context(), clients); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

var (
	errBusy = errors.New("busy")
	shipped int
)

func ship(ctx context.Context) error {
	shipped++
	return ctx.Err()
}

// store stands for a write to a resource that checks fencing tokens.
func store(ctx context.Context, token int64) error {
	if token <= 0 {
		return fmt.Errorf("token %d", token)
	}
	return ship(ctx)
}

func fromRedislock(ctx context.Context, client redis.UniversalClient) error {
	locker := redislock.New(client)
	lease, err := locker.Obtain(ctx, "order:17", 10*time.Second, &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), 20),
	})
	if errors.Is(err, redislock.ErrNotObtained) {
		return errBusy
	}
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	if err := lease.Refresh(ctx, 20*time.Second, nil); err != nil {
		return err
	}
	return ship(ctx)
}

func toHandoff(ctx context.Context, client redis.UniversalClient) error {
	locker, err := handoff.New(client, lock.TTL(10*time.Second))
	if err != nil {
		return err
	}
	defer locker.Close()
	lease, err := locker.Acquire(ctx, "order:17", lock.Wait(2*time.Second))
	if errors.Is(err, lock.ErrHeld) {
		return errBusy
	}
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx))
	if err := lease.Extend(ctx, 20*time.Second); err != nil {
		return err
	}
	return ship(ctx)
}

func fromRedsync(ctx context.Context, client redis.UniversalClient) error {
	rs := redsync.New(goredis.NewPool(client))
	mutex := rs.NewMutex("order:17", redsync.WithExpiry(10*time.Second), redsync.WithTries(32))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(ctx)
	if time.Until(mutex.Until()) < 5*time.Second {
		return errBusy
	}
	return ship(ctx)
}

func toWithLock(ctx context.Context, client redis.UniversalClient) error {
	locker, err := handoff.New(client, lock.TTL(10*time.Second))
	if err != nil {
		return err
	}
	defer locker.Close()
	// The context of the work is cancelled when the lock is lost. Until then, the watchdog renews the lock.
	return locker.WithLock(ctx, "order:17", func(ctx context.Context) error {
		return ship(ctx)
	}, lock.Wait(5*time.Second), lock.Watchdog())
}

func toRedlock(ctx context.Context, clients []redis.UniversalClient) error {
	locker, err := redlock.New(clients, lock.TTL(10*time.Second))
	if err != nil {
		return err
	}
	defer locker.Close()
	lease, err := locker.Acquire(ctx, "order:17", lock.Wait(5*time.Second))
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx))
	if time.Until(lease.ValidUntil()) < 5*time.Second {
		return errBusy
	}
	return ship(ctx)
}

func fromGetLock(ctx context.Context, client redis.UniversalClient) error {
	// Without a prefix the key is the same as in the Java services, so both share the lock.
	locker, err := redisson.NewPubSub(client, lock.Prefix(""), lock.TTL(10*time.Second))
	if err != nil {
		return err
	}
	defer locker.Close()
	return locker.WithLock(ctx, "order:17", func(ctx context.Context) error {
		return ship(ctx)
	}, lock.Wait(2*time.Second))
}

func fromGetFencedLock(ctx context.Context, client redis.UniversalClient) error {
	locker, err := redisson.NewFenced(client, lock.Prefix(""))
	if err != nil {
		return err
	}
	defer locker.Close()
	lease, err := locker.Acquire(ctx, "stock:17", lock.Watchdog())
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx))
	return store(ctx, lease.FencingToken())
}

func fromRedisPy(ctx context.Context, client redis.UniversalClient) error {
	locker, err := polled.NewSpin(client, lock.Prefix(""), lock.TTL(10*time.Second))
	if err != nil {
		return err
	}
	defer locker.Close()
	return locker.WithLock(ctx, "order:17", func(ctx context.Context) error {
		return ship(ctx)
	}, lock.Wait(2*time.Second))
}
