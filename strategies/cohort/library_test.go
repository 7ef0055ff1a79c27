package cohort_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/handoff"
)

// with is a Locker's configuration with a go-redis client at its default settings, which
// retries.
func with(t *testing.T, server *redistest.Server) strategies.Config {
	t.Helper()
	options := &redis.UniversalOptions{Addrs: []string{server.Addr}}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return strategies.Config{Nodes: []strategies.Node{{Client: client, Options: options}}, Prefix: "trial:", TTL: time.Minute}
}

// A release is told that it was one, also when the only other of the process gives up in
// that moment, so that the process has both left and entered the queue.
func TestReleaseWhileTheLastWaiterLeaves(t *testing.T) {
	server := redistest.Start(t)
	locker, err := cohort.New(with(t, server), cohort.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locker.Close() }()
	for range 200 {
		lease, err := locker.Acquire(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			next, err := locker.Acquire(ctx, "key")
			if err == nil {
				err = next.Release(context.Background())
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		cohort.AwaitWaiters(t, locker, "key", 1)
		go func() {
			for end := time.Now().Add(rand.N(200 * time.Microsecond)); time.Now().Before(end); {
			}
			cancel()
		}()
		if err := lease.Release(t.Context()); err != nil {
			t.Fatalf("a release returned %v", err)
		}
		<-waited
	}
	if n := cohort.Cohorts(locker); n != 0 {
		t.Errorf("%d cohorts are left of keys that nobody wants", n)
	}
}

// Processes may have either lock of ours: it is one.
func TestExcludesHandoff(t *testing.T) {
	server := redistest.Start(t)
	locker, err := cohort.New(with(t, server), cohort.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locker.Close() }()
	other, err := handoff.New(with(t, server), handoff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	lease, err := other.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locker.TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a try-lock returned %v, want ErrHeld", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if got, last := next.(strategies.Fenced).FencingToken(), lease.(strategies.Fenced).FencingToken(); got <= last {
		t.Errorf("token %d came after %d", got, last)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// What cannot be is refused, all at once.
func TestOptions(t *testing.T) {
	for list, want := range map[string]string{
		"cohort:batch=0":     "option batch: it must be between 1 and 16384, not 0",
		"cohort:batch=16385": "option batch: it must be between 1 and 16384, not 16385",
		"cohort:size=5":      `no option "size" (there are: batch)`,
	} {
		if _, err := strategies.ParseVariants(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want: %s", list, err, want)
		}
	}
	if _, err := cohort.New(strategies.Config{}, cohort.Options{}); err == nil ||
		!strings.Contains(err.Error(), "it needs 1 Redis nodes") || !strings.Contains(err.Error(), "option batch") {
		t.Errorf("New said: %v", err)
	}
}
