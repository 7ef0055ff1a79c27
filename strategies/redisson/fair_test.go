package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

const (
	lockKey           = "trial:key"
	queue             = "redisson_lock_queue:{trial:key}"
	deadlines         = "redisson_lock_timeout:{trial:key}"
	wakeChannelPrefix = "redisson_lock__channel:{trial:key}:" // and the owner
)

// queued returns the owners in the queue, starting with its head.
func queued(t testing.TB, outside redis.UniversalClient) []string {
	t.Helper()
	owners, err := outside.LRange(t.Context(), queue, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	return owners
}

// scores returns the deadlines of the owners in the queue, in epoch ms, by the name of the owner.
func scores(t testing.TB, outside redis.UniversalClient) map[string]int64 {
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

// waiter is a caller that waits for the lock "key" in a goroutine.
type waiter struct {
	cancel context.CancelFunc
	leases chan strategies.Lease
	errors chan error
}

// enqueue starts a waiter of process p. It waits until the queue has n entries and p has made two more attempts, after
// which the waiter is parked.
func enqueue(t testing.TB, outside redis.UniversalClient, p trial.Process, n int) *waiter {
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

// lease waits until the waiter gets the lock, and returns the lease. The test fails if Acquire returns an error, or
// does not return within 20 s.
func (w *waiter) lease(t testing.TB) strategies.Lease {
	t.Helper()
	select {
	case lease := <-w.leases:
		return lease
	case err := <-w.errors:
		t.Fatalf("a waiter got: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("the head of the queue was not notified")
	}
	return nil
}

// cancelled cancels the waiter's context. The test fails if Acquire does not return context.Canceled.
func (w *waiter) cancelled(t testing.TB) {
	t.Helper()
	w.cancel()
	if err := <-w.errors; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait returned %v", err)
	}
}

// Each waiter must cost one message and make one attempt after its wake-up. The check fifo of the conformance suite
// tests the order.
func TestTurnCostsOneMessageAndOneTry(t *testing.T) {
	const each, processes = 50, 4
	server, outside, holder := begin(t, "fair", time.Minute)
	lease := holder.Acquire(t, "key")
	var all []trial.Process
	for range processes {
		all = append(all, trial.Start(t, server, "fair", time.Minute))
	}
	parked := trial.Park(t, each, all...)
	began := time.Now()
	published := locktest.Calls(t, outside, func() {
		for range each * processes {
			trial.Release(t, lease)
			lease = parked.Next(t)
		}
		trial.Release(t, lease)
	})
	echoes := processes * (int(time.Since(began)/time.Second) + 1) // what a process publishes to itself each second
	if n := published["publish"]; n < each*processes || n > each*processes+echoes {
		t.Errorf("%d messages for %d waiters", n, each*processes)
	}
	counts := trial.Total(all...)
	if counts.Useful != each*processes || counts.Futile != 0 || counts.Attempts != 3*each*processes {
		t.Errorf("%+v for %d waiters, want one wake-up and three attempts for each", counts, each*processes)
	}
	nothingLeft(t, outside)
}

// The second of four waiters gives up. It must be removed from the queue, and the deadlines of the waiters behind it
// must become earlier by its wait-timeout of a minute.
func TestCancelledWaiterLeavesTheQueue(t *testing.T) {
	_, outside, p := begin(t, "fair:wait-timeout=1m", 10*time.Minute)
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
	nothingLeft(t, outside)
}

// 300 waiters give up at once. At most 150 scripts may remove them, because each script walks through the whole queue.
func TestManyWaitersLeaveTogether(t *testing.T) {
	const waiters = 300
	_, outside, p := begin(t, "fair", 10*time.Minute)
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

// The lock is free, but dead waiters are at the head of the queue. A living waiter behind them must poll, and must not
// get the lock before the deadline of the last dead waiter.
func TestDeadWaitersCostTheirDeadline(t *testing.T) {
	for _, dead := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			trial.Calm(t, func(times int) string {
				return waitBehindDeadWaiters(t, dead,
					time.Duration(times)*150*time.Millisecond)
			})
		})
	}
}

func waitBehindDeadWaiters(t *testing.T, dead int, wait time.Duration) (spoilt string) {
	_, outside, p := begin(t, fmt.Sprint("fair:wait-timeout=", wait), time.Minute)
	began := time.Now()
	for i := range dead {
		plant(t, outside, ownerPrefix+fmt.Sprint(i), began.Add(time.Duration(i+1)*wait))
	}
	last := began.Add(time.Duration(dead) * wait).UnixMilli()
	lease := p.Acquire(t, "key")
	if now := time.Now().UnixMilli(); now < last {
		t.Errorf("it was granted %d ms before the last dead waiter's deadline", last-now)
	}
	counts := p.Counts()
	switch {
	case counts.Attempts < 6:
		spoilt = fmt.Sprintf("%+v: the deadlines were over before it had polled three times", counts)
	case counts.Useful != 1 || counts.Futile != counts.Attempts-3:
		t.Errorf("%+v: it must poll, and be woken once for each try but the first two", counts)
	}
	if n := len(queued(t, outside)) + len(scores(t, outside)); n != 0 {
		t.Errorf("%d entries of the dead are left", n)
	}
	trial.Release(t, lease)
	return spoilt
}

// Dead waiters are at the head of the queue. A new waiter must remove those whose deadlines have passed. A release must
// remove those without a deadline, and notify the living waiter behind them.
func TestReleaseDropsOverdueWaiters(t *testing.T) {
	_, outside, p := begin(t, "fair", time.Hour)
	lease := p.Acquire(t, "key")
	for i := range 3 {
		plant(t, outside, ownerPrefix+fmt.Sprint(i), time.Now().Add(-time.Second))
	}
	// The deadline of the last entry has passed, so the first reply to this waiter is a negative remaining time.
	w := start(t, p)
	poll.Until(t, "it stands in the queue alone", func() bool {
		return len(queued(t, outside)) == 1 && p.Counts().Attempts == 3
	})
	for i := range 3 {
		outside.LPush(t.Context(), queue, ownerPrefix+fmt.Sprint(i)) // without a deadline at all
	}
	trial.Release(t, lease)
	trial.Release(t, w.lease(t))
	nothingLeft(t, outside)
}

// The last entry is past its deadline, but the head is not. A new waiter therefore gets a negative remaining time as
// its first reply. It must still queue and get its turn.
func TestNegativeFirstReply(t *testing.T) {
	_, outside, p := begin(t, "fair:wait-timeout=100ms", time.Hour)
	lease := p.Acquire(t, "key")
	plant(t, outside, ownerPrefix+"1", time.Now().Add(time.Hour))
	plant(t, outside, ownerPrefix+"2", time.Now().Add(-20*time.Second))
	w := enqueue(t, outside, p, 3)
	me := queued(t, outside)[2]
	if late := time.Now().UnixMilli() - scores(t, outside)[me]; late < 15_000 {
		t.Errorf("its deadline is %d ms ago, want it a wait behind the overdue one's", late)
	}
	// When the head leaves, the release finds that this waiter is past its deadline too, and removes it. The waiter then
	// queues again and is alone.
	outside.LPop(t.Context(), queue)
	outside.ZRem(t.Context(), deadlines, ownerPrefix+"1")
	trial.Release(t, lease)
	if n := outside.Exists(t.Context(), queue).Val(); n != 0 {
		t.Errorf("the overdue stand in the queue after a release")
	}
	outside.Publish(t.Context(), wakeChannelPrefix+me, "0")
	trial.Release(t, w.lease(t))
}

// Three waiters give up while their process cannot reach Redis. The process must remove them from the queue when it
// reaches Redis again. Otherwise each would block the queue for its wait-timeout, like a dead waiter.
func TestWaitersLeaveQueueAfterOutage(t *testing.T) {
	const waiters = 3
	server, outside, holder := begin(t, "fair", time.Minute)
	lease := holder.Acquire(t, "key")
	way, options := new(netfault.Path), *server.Node(t).Options
	options.Dialer = way.Through(new(net.Dialer).DialContext)
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	p := trial.StartOn(t, []goredis.Node{{Client: client, Options: &options}}, "fair", time.Minute)
	var waiting []*waiter
	for i := range waiters {
		waiting = append(waiting, enqueue(t, outside, p, i+1))
	}
	way.Block(true)
	way.Snap()
	for _, w := range waiting {
		w.cancel()
		<-w.errors //nolint:errcheck // of the way to Redis, or of the cancelled wait
	}
	if n := len(queued(t, outside)); n != waiters {
		t.Fatalf("%d of %d waiters are in the queue while none can leave it", n, waiters)
	}
	way.Block(false)
	poll.Until(t, "all have left the queue", func() bool {
		return len(queued(t, outside))+len(scores(t,
			outside)) == 0
	})
	trial.Release(t, lease)
	trial.Release(t, p.Acquire(t, "key"))
}
