package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// family lists the variants under test: all locks of this package, and the semaphore with both kinds of permits.
var family = []string{
	"pubsub", "pubsub-broadcast", "fair", "fenced", "redisson-spin", "semaphore:permits=1",
	"semaphore:permits=1,expirable=true",
}

// plain opens a process whose client has go-redis's default: a command continues after the end of its context. read is
// the ReadTimeout of the client.
func plain(
	t testing.TB, server *redistest.Server, read time.Duration, variant string, ttl time.Duration,
) trial.Process {
	t.Helper()
	return trial.StartOn(t, []goredis.Node{plainNode(t, server, read)}, variant, ttl)
}

func plainNode(t testing.TB, server *redistest.Server, read time.Duration) goredis.Node {
	t.Helper()
	options := &redis.UniversalOptions{Addrs: []string{server.Addr}, ReadTimeout: read, DisableIdentity: true}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: options}
}

const (
	// limit is the duration of the context of each call. late is the longest allowed duration of the call itself. A call
	// that ignored its context would take 8 s, the client's ReadTimeout.
	limit = 300 * time.Millisecond
	late  = 3 * time.Second
)

// ends runs the function call with a context that ends after limit. The test fails unless call returns
// context.DeadlineExceeded and takes at most as long as late. Messages name the call by what.
func ends(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	took := time.Since(began)
	t.Logf("%s: %v, %v", what, took.Round(time.Millisecond), err)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, strategies.ErrHeld) ||
		errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("%s returned %v", what, err)
	}
	if took > late {
		t.Errorf("%s with a context of %v took %v", what, limit, took)
	}
}

// Redis is paused, and the client ignores contexts. All calls must still end with their contexts. Locks that Redis
// grants after the pause must be released.
func TestCallsEndWhileRedisHangs(t *testing.T) {
	t.Parallel()
	for _, variant := range family {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p := plain(t, server, 8*time.Second, variant, time.Hour)
			other := trial.Start(t, server, variant, time.Hour)
			own, taken := p.Acquire(t, "own"), other.Acquire(t, "taken")
			waiting := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := p.Locker.Acquire(ctx, "taken")
				waiting <- err
			}()
			trier, _ := strategies.As[strategies.Trier](p.Locker)
			server.Pause()
			ends(t, "Acquire", func(ctx context.Context) error { _, err := p.Locker.Acquire(ctx, "a"); return err })
			ends(t, "TryAcquire", func(ctx context.Context) error { _, err := trier.TryAcquire(ctx, "b"); return err })
			if e, ok := strategies.As[strategies.Extender](own); ok {
				ends(t, "Extend", func(ctx context.Context) error { return e.Extend(ctx, time.Hour) })
			}
			ends(t, "Release", own.Release)
			prepared, _ := strategies.As[strategies.Preparer](p.Locker)
			ends(t, "Prepare", func(ctx context.Context) error { return prepared.Prepare(ctx, []string{"c"}) })
			select {
			case err := <-waiting:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a waiter got %v", err)
				}
			case <-time.After(late):
				t.Error("a waiter outlives its context")
			}
			server.Resume()
			trial.Release(t, taken)
			for _, key := range []string{"a", "b", "own", "taken"} {
				began := time.Now()
				trial.Release(t, other.Acquire(t, key))
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%q was free %v after Redis had come back", key, took)
				}
			}
		})
	}
}

// Redis is paused, and the client's ReadTimeout is 20 s. Close must return within 6 s.
func TestCloseEndsWhileRedisHangs(t *testing.T) {
	t.Parallel()
	for _, variant := range family {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p := plain(t, server, 20*time.Second, variant, 2*time.Second)
			lease := p.Acquire(t, "key")
			p.Acquire(t, "watched")
			server.Pause()
			defer server.Resume()
			ends(t, "Release", lease.Release)
			ends(t, "Acquire", func(ctx context.Context) error { _, err := p.Locker.Acquire(ctx, "another"); return err })
			began := time.Now()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			took := time.Since(began)
			t.Logf("Close took %v", took.Round(time.Millisecond))
			if took > 6*time.Second {
				t.Errorf("Close took %v", took)
			}
		})
	}
}

// Redis refuses a release for a short time. The release must be repeated, so that the next client gets the lock long
// before the TTL of an hour has passed.
func TestRefusedReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	for _, variant := range family {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			outside := server.Client(t)
			refuse := func(replicas string) {
				if err := outside.ConfigSet(t.Context(), "min-replicas-to-write", replicas).Err(); err != nil {
					t.Fatal(err)
				}
			}
			p, other := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
			for range 2 { // the goroutine that repeats has ended in between
				lease := p.Acquire(t, "key")
				refuse("1")
				if err := lease.Release(t.Context()); !redis.HasErrorPrefix(err, "NOREPLICAS") {
					t.Errorf("a release returned %v", err)
				}
				refuse("0")
				began := time.Now()
				trial.Release(t, other.Acquire(t, "key"))
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the lock was free %v after Redis had taken commands again", took)
				}
			}
		})
	}
}

// The context of a release is already done. Release must return an error, but the lock must be released in the
// background.
func TestReleaseIsSentAfterContextEnd(t *testing.T) {
	t.Parallel()
	for _, variant := range family {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p, other := trial.Start(t, server, variant, time.Hour), trial.Start(t, server, variant, time.Hour)
			lease := p.Acquire(t, "key")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := lease.Release(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("a release returned %v", err)
			}
			trial.Release(t, other.Acquire(t, "key"))
		})
	}
}

// forger is a hook that replies to scripts with answer in place of Redis, unless answer is nil.
type forger struct{ answer any }

func (f *forger) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *forger) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *forger) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if scripted, is := asScript(cmd); is && f.answer != nil {
			scripted.SetVal(f.answer)
			return nil
		}
		return next(ctx, cmd)
	}
}

func asScript(cmd redis.Cmder) (*redis.Cmd, bool) {
	if once, is := cmd.(indeterminate.Once); is {
		cmd = once.Cmder
	}
	scripted, is := cmd.(*redis.Cmd)
	return scripted, is && cmd.Name() == "evalsha"
}

// A reply has a type or value that the script cannot return. The error must be neither ErrHeld nor ErrNotHeld.
func TestAnswersOfTheWrongType(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, variant := range family {
		for _, answer := range []any{"OK", "0", int64(7), []any{}, []any{"0", "0"}, 1.5} {
			t.Run(fmt.Sprintf("%s %T %v", variant, answer, answer), func(t *testing.T) {
				t.Parallel()
				_, number := answer.(int64)
				node, f := server.Node(t), &forger{}
				node.Client.AddHook(f)
				p := trial.StartOn(t, []goredis.Node{node}, variant, time.Hour)
				key := t.Name()
				trier, _ := strategies.As[strategies.Trier](p.Locker)
				lease := p.Acquire(t, key)
				judge := func(what string, err error) {
					if err == nil || errors.Is(err, strategies.ErrHeld) || errors.Is(err, strategies.ErrNotHeld) {
						t.Errorf("%s: %v", what, err)
					}
				}
				f.answer = answer
				if e, ok := strategies.As[strategies.Extender](lease); ok {
					judge("Extend", e.Extend(t.Context(), time.Hour))
				}
				if !number { // it is a PTTL
					_, err := trier.TryAcquire(t.Context(), key+"free")
					judge("TryAcquire", err)
				}
				judge("Release", lease.Release(t.Context()))
			})
		}
	}
}
