package fair_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/fair"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func init() { strategies.RegisterStrategy(fair.Strategy()) }

const (
	lockKey   = "trial:key"
	queue     = "redisson_lock_queue:{trial:key}"
	deadlines = "redisson_lock_timeout:{trial:key}"
	told      = "redisson_lock__channel:{trial:key}:" // and the owner
)

func TestConformance(t *testing.T) { trial.Conform(t, "fair") }

// queued are the owners in the queue.
func queued(t testing.TB, outside *redis.Client) []string {
	t.Helper()
	owners, err := outside.LRange(t.Context(), queue, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	return owners
}

// scores are the deadlines by owner.
func scores(t testing.TB, outside *redis.Client) map[string]int64 {
	t.Helper()
	members, err := outside.ZRangeWithScores(t.Context(), deadlines, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	scores := map[string]int64{}
	for _, m := range members {
		scores[m.Member.(string)] = int64(m.Score)
	}
	return scores
}

// waiter acquires in the background, unless it is cancelled before.
type waiter struct {
	cancel context.CancelFunc
	leases chan strategies.Lease
	errors chan error
}

// enqueue starts a waiter and returns when it is the n-th in the queue and has had
// the answers to its two tries.
func enqueue(t testing.TB, outside *redis.Client, p trial.Process, n int) *waiter {
	t.Helper()
	before := p.Counts().Attempts
	w := start(t, p)
	poll.Until(t, "it stands in the queue", func() bool {
		length, err := outside.LLen(t.Context(), queue).Result()
		return err == nil && length == int64(n) && p.Counts().Attempts-before >= 2
	})
	return w
}

func start(t testing.TB, p trial.Process) *waiter { return startFor(t, p, time.Hour) }

// startFor starts one that would not wait longer than that.
func startFor(t testing.TB, p trial.Process, limit time.Duration) *waiter {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	w := &waiter{cancel: cancel, leases: make(chan strategies.Lease, 1), errors: make(chan error, 1)}
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		lease, err := p.Locker.Acquire(ctx, "key")
		if err != nil {
			w.errors <- err
			return
		}
		w.leases <- lease
	}()
	return w
}

// lease is what it gets.
func (w *waiter) lease(t testing.TB) strategies.Lease {
	t.Helper()
	select {
	case lease := <-w.leases:
		return lease
	case err := <-w.errors:
		t.Fatalf("a waiter got: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("the head of the queue was not told that the lock is free")
	}
	return nil
}

// cancelled cancels it and waits for its end.
func (w *waiter) cancelled(t testing.TB) {
	t.Helper()
	w.cancel()
	if err := <-w.errors; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait returned %v", err)
	}
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "fair", time.Minute)
	trial.Release(t, p.Acquire(t, "key")) // opens the pool's connection
	outside := server.Client(t)
	var lease strategies.Lease
	acquired := locktest.Calls(t, outside, func() { lease = p.Acquire(t, "key") })
	if want := map[string]int{"evalsha": 1, "lindex": 1, "exists": 1, "lpop": 1, "zrem": 1, "zrange": 1, "hincrby": 1, "pexpire": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() { trial.Release(t, lease) })
	if want := map[string]int{"evalsha": 1, "lindex": 1, "exists": 1, "hexists": 1, "hincrby": 1, "del": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

// 200 waiters of four processes are served strictly in the order in which they came,
// each by one message and one try.
func TestServesInOrder(t *testing.T) {
	const waiters, processes = 200, 4
	server := redistest.Start(t)
	outside := server.Client(t)
	holder := trial.Start(t, server, "fair", time.Minute)
	lease := holder.Acquire(t, "key")
	var all []trial.Process
	for range processes {
		all = append(all, trial.Start(t, server, "fair", time.Minute))
	}
	order := make(chan int, waiters)
	var waiting []*waiter
	for i := range waiters {
		w := enqueue(t, outside, all[i%processes], i+1)
		waiting = append(waiting, w)
	}
	for i, w := range waiting {
		go func() {
			lease, ok := <-w.leases
			if !ok {
				return
			}
			order <- i
			w.errors <- lease.Release(context.Background())
		}()
	}
	published := locktest.Calls(t, outside, func() {
		trial.Release(t, lease)
		for want := range waiters {
			select {
			case got := <-order:
				if got != want {
					t.Fatalf("waiter %d was served when it was waiter %d's turn", got, want)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("waiter %d was not served", want)
			}
		}
		for _, w := range waiting {
			if err := <-w.errors; err != nil {
				t.Errorf("release: %v", err)
			}
		}
	})
	if published["publish"] != waiters {
		t.Errorf("%d messages for %d waiters", published["publish"], waiters)
	}
	counts := trial.Total(all...)
	if counts.Useful != waiters || counts.Futile != 0 || counts.Attempts != 3*waiters {
		t.Errorf("%+v for %d waiters, want one wake-up and three attempts for each", counts, waiters)
	}
	if left := outside.DBSize(t.Context()).Val(); left != 0 {
		t.Errorf("%d keys are left", left)
	}
}

// A waiter that gives up leaves no trace, and those behind it move up by its wait.
func TestCancelledWaiterLeavesTheQueue(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "fair:wait-timeout=1m", 10*time.Minute)
	lease := p.Acquire(t, "key")
	var waiting []*waiter
	for i := range 4 {
		waiting = append(waiting, enqueue(t, outside, p, i+1))
	}
	owners, before := queued(t, outside), scores(t, outside)
	waiting[1].cancelled(t)
	if got := queued(t, outside); len(got) != 3 || got[0] != owners[0] || got[1] != owners[2] || got[2] != owners[3] {
		t.Errorf("the queue is %q, want %q without the second", got, owners)
	}
	want := maps.Clone(before)
	delete(want, owners[1])
	want[owners[2]] -= 60_000
	want[owners[3]] -= 60_000
	if got := scores(t, outside); !maps.Equal(got, want) {
		t.Errorf("the deadlines are %v, want %v: those behind move up by a wait", got, want)
	}
	for _, i := range []int{0, 2, 3} {
		waiting[i].cancelled(t)
	}
	trial.Release(t, lease)
	if left := outside.DBSize(t.Context()).Val(); left != 0 {
		t.Errorf("%d keys are left", left)
	}
}

// The head gives up after it was told: the next one is.
func TestCancelledHeadTellsTheNext(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "fair", 10*time.Minute)
	lease := p.Acquire(t, "key")
	head := enqueue(t, outside, p, 1)
	next := enqueue(t, outside, p, 2)
	outside.Del(t.Context(), lockKey) // as if the release's message were still on its way
	head.cancelled(t)
	trial.Release(t, next.lease(t))
	if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("release of a lost lease returned %v, want ErrNotHeld", err)
	}
}

// Many who give up at once walk the queue a few times, not each once.
func TestManyLeaveTogether(t *testing.T) {
	const waiters = 300
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "fair", 10*time.Minute)
	lease := p.Acquire(t, "key")
	var waiting []*waiter
	for range waiters {
		waiting = append(waiting, start(t, p))
	}
	poll.Until(t, "all stand in the queue", func() bool { return p.Counts().Attempts == 1+2*waiters })
	ran := locktest.Calls(t, outside, func() {
		for _, w := range waiting {
			w.cancel()
		}
		for _, w := range waiting {
			if err := <-w.errors; err == nil {
				t.Error("cancelled, and yet it has the lock")
			}
		}
	})
	if ran["evalsha"] > waiters/2 || ran["lrem"] != waiters {
		t.Errorf("%d walks took %d of %d out of the queue", ran["evalsha"], ran["lrem"], waiters)
	}
	if n := outside.Exists(t.Context(), queue, deadlines).Val(); n != 0 {
		t.Error("the queue is not empty")
	}
	trial.Release(t, lease)
}

func TestHoldsSentTwice(t *testing.T) { trial.HoldsSentTwice(t, "fair:watchdog=false") }

func TestHoldsNotShortened(t *testing.T) { trial.HoldsNotShortened(t, "fair:watchdog=false") }

func TestShortenedUnheard(t *testing.T) { trial.ShortenedUnheard(t, "fair:watchdog=false") }

func TestReleasedLate(t *testing.T) { trial.ReleasedLate(t, "fair:watchdog=false") }
