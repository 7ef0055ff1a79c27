package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func subscribers(outside redis.UniversalClient) int64 {
	return outside.PubSubNumSub(context.Background(), channel).Val()[channel]
}

// Ten clients wait in each of one, two or four processes. Each process must have a single subscription. A release must
// wake only one waiter of each process, and that waiter must try once.
func TestReleaseWakesOneWaiterPerProcess(t *testing.T) {
	for _, processes := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			const waiters = 10
			server, outside, holder := begin(t, "pubsub", time.Minute)
			lease := holder.Acquire(t, "key")
			var waiting []trial.Process
			for range processes {
				waiting = append(waiting, trial.Start(t, server, "pubsub", time.Minute))
			}
			if n := subscribers(outside); n != 0 {
				t.Errorf("%d subscriptions without a waiter", n)
			}
			var parked *trial.Waiters
			ran := locktest.Calls(t, outside, func() { parked = trial.Park(t, waiters, waiting...) })
			if n := subscribers(outside); n != int64(processes) || ran["subscribe"] != processes {
				t.Errorf("%d subscriptions by %d SUBSCRIBEs of %d processes that wait", n, ran["subscribe"], processes)
			}
			for range processes * waiters {
				trial.Release(t, lease)
				lease = parked.Next(t)
			}
			trial.Release(t, lease)
			poll.Until(t, "no subscription is left", func() bool { return subscribers(outside) == 0 })
			const parking = 2 // attempts before a waiter parks
			releases := int64(processes * waiters)
			got := trial.Total(waiting...)
			if got.Useful != releases || got.Futile > releases*int64(processes-1) {
				t.Errorf("%d useful and %d futile wake-ups for %d releases, want one and at most %d for each",
					got.Useful, got.Futile, releases, processes-1)
			}
			if processes > 1 && got.Futile == 0 {
				t.Error("no other process was ever woken")
			}
			if want := parking*releases + got.Useful + got.Futile; got.Attempts != want {
				t.Errorf("%d attempts, want %d: two before parking and one for each wake-up", got.Attempts, want)
			}
		})
	}
}

// With blind=true a waiter must not try again after it has subscribed. It makes two attempts in total: one before it
// subscribes, and one after the message.
func TestBlindWaitersDoNotTryAgain(t *testing.T) {
	_, outside, p := begin(t, "pubsub:blind=true", time.Minute)
	lease := p.Acquire(t, "key")
	leases := make(chan strategies.Lease, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() { leases <- p.Acquire(t, "key") })
	poll.Until(t, "it has subscribed", func() bool { return subscribers(outside) == 1 })
	trial.Release(t, lease)
	waiting.Wait()
	trial.Release(t, <-leases)
	if n := p.Counts().Attempts; n != 3 { // the holder's, the waiter's first, and the one that it was woken for
		t.Errorf("%d tries, want 3", n)
	}
}

// A dead holder's lease expires after 100 ms. With park=deadline a waiter must not try again at that time, so its wait
// lasts until its context ends.
func TestParkedUntilTheDeadline(t *testing.T) {
	_, outside, p := begin(t, "pubsub:park=deadline", time.Minute)
	const dies = `redis.call('HSET', KEYS[1], 'somebody:1', 1) return redis.call('PEXPIRE', KEYS[1], 100)`
	err := outside.Eval(t.Context(), dies, []string{"trial:key"}).Err()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := p.Locker.Acquire(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it returned %v", err)
	}
	trial.Release(t, p.Acquire(t, "key"))
}

// The lease of a dead holder expires while a client waits. The waiter must sleep until then, and make at most 8
// attempts in total. A poll without pauses in the last millisecond would make many more.
func TestDeadHolderCostsFewAttempts(t *testing.T) {
	const parked = 2 // attempts before parking
	trial.Calm(t, func(times int) string {
		server := redistest.Start(t)
		p := trial.Start(t, server, "pubsub", time.Hour) // the TTL is too long to wake a waiter
		err := server.Client(t).Eval(t.Context(),
			`redis.call('HSET', KEYS[1], 'somebody:1', 1) return redis.call('PEXPIRE', KEYS[1], ARGV[1])`,
			[]string{"trial:key"}, 200*times).Err()
		if err != nil {
			t.Fatal(err)
		}
		trial.Release(t, p.Acquire(t, "key"))
		counts := p.Counts()
		if counts.Attempts <= parked {
			return "the lock ran out before anybody was parked"
		}
		if counts.Attempts > 8 {
			t.Errorf("%d attempts for a lock that runs out once", counts.Attempts)
		}
		if counts.Useful != 1 || counts.Futile != counts.Attempts-parked-1 {
			t.Errorf("%+v: every attempt but the first %d must follow a wake-up, one of them useful", counts, parked)
		}
		return ""
	})
}

// 2,000 clients wait in Acquire. The Locker may start at most 8 goroutines for them, because a process may have ten
// thousand waiters.
func TestWaitersCostNoGoroutines(t *testing.T) {
	const waiters = 2000
	_, _, p := begin(t, "pubsub", time.Hour)
	lease := p.Acquire(t, "key")
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if lease, err := p.Locker.Acquire(ctx, "key"); err == nil {
				t.Error("a cancelled waiter got the lock")
				_ = lease.Release(context.Background())
			}
		})
	}
	poll.Until(t, "all waiters are parked", func() bool { return p.Counts().Attempts == 1+2*waiters })
	// go-redis's connection pool may still run goroutines that some of the waiters have caused.
	poll.Until(t, "few goroutines run in addition to the waiters' own", func() bool {
		return runtime.NumGoroutine()-before-waiters <= 8
	})
	cancel()
	all.Wait()
	trial.Release(t, lease)
}

// The lock's hash, its TTL and the message of a release must have the format that Redisson reads.
func TestPubSubWireFormat(t *testing.T) {
	for key, channel := range map[string]string{
		"key":     "redisson_lock__channel:{trial:key}",
		"{a}key":  "redisson_lock__channel:trial:{a}key",
		"odd{key": "redisson_lock__channel:trial:odd{key",
	} {
		t.Run(key, func(t *testing.T) {
			_, outside, p := begin(t, "pubsub", time.Minute)
			lease := p.Acquire(t, key)
			hash, err := outside.HGetAll(t.Context(), "trial:"+key).Result()
			if err != nil {
				t.Fatal(err)
			}
			owner := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)
			for field, count := range hash {
				if !owner.MatchString(field) || count != "1" {
					t.Errorf("it is held as {%s: %s}", field, count)
				}
			}
			if len(hash) != 1 {
				t.Errorf("the hash has %d fields, want 1", len(hash))
			}
			if ttl, err := outside.PTTL(t.Context(), "trial:"+key).Result(); err != nil || ttl <= 0 ||
				ttl > time.Minute {
				t.Errorf("its PTTL is %v (%v)", ttl, err)
			}
			heard := listen(t, outside, channel)
			trial.Release(t, lease)
			if payload := heard().Payload; payload != "0" {
				t.Errorf("a release published %q, want \"0\"", payload)
			}
		})
	}
}

// The key of a lease is deleted, or Redis stops replying. The channel of Lost must be closed when the watchdog or
// Release finds the key gone, or when the lease expires while Redis does not reply.
func TestLossIsReported(t *testing.T) {
	for what, test := range map[string]struct {
		ttl  time.Duration
		lose func(t *testing.T, server *redistest.Server, lease strategies.Lease)
	}{
		"by the watchdog": {200 * time.Millisecond, func(t *testing.T, server *redistest.Server, _ strategies.Lease) {
			server.Client(t).Del(t.Context(), "trial:key")
		}},
		"by the watchdog, of a silent Redis": {200 * time.Millisecond, func(
			t *testing.T, server *redistest.Server, lease strategies.Lease,
		) {
			server.Pause()
			t.Cleanup(server.Resume)
			<-lease.(strategies.Watched).Lost()
			if left := time.Until(lease.(strategies.Timed).ValidUntil()); left > 0 {
				t.Errorf("it was reported as lost %v before it ran out", left)
			}
		}},
		"by Release": {time.Hour, func(t *testing.T, server *redistest.Server, lease strategies.Lease) {
			server.Client(t).Del(t.Context(), "trial:key")
			if err := lease.Release(t.Context()); err != strategies.ErrNotHeld {
				t.Errorf("release returned %v, want ErrNotHeld", err)
			}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Start(t)
			lease := trial.Start(t, server, "pubsub", test.ttl).Acquire(t, "key")
			test.lose(t, server, lease)
			select {
			case <-lease.(strategies.Watched).Lost():
			case <-time.After(20 * time.Second):
				t.Error("the loss of the lease is not reported")
			}
		})
	}
}

// answersLate is a hook that holds back the reply to the first pipeline until heard is closed. That pipeline is the
// watchdog's first renewal.
type answersLate struct {
	carriedOut, heard, again chan struct{}
	calls                    atomic.Int32
}

func (a *answersLate) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (a *answersLate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (a *answersLate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		switch a.calls.Add(1) {
		case 1:
			err := next(ctx, cmds)
			close(a.carriedOut)
			<-a.heard
			return err
		case 2:
			close(a.again)
		}
		return next(ctx, cmds)
	}
}

// Redis executes first a renewal and then an Extend with a shorter TTL. The reply to the renewal arrives last. It must
// not make the lease valid for longer than Extend has set.
func TestLateRenewalAnswer(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Millisecond
	p := trial.Start(t, redistest.Start(t), "pubsub", ttl)
	lease := p.Acquire(t, "key")
	extend := func(by time.Duration) {
		if err := lease.(strategies.Extender).Extend(t.Context(), by); err != nil {
			t.Error(err)
		}
	}
	extend(time.Minute)
	late := &answersLate{carriedOut: make(chan struct{}), heard: make(chan struct{}), again: make(chan struct{})}
	p.Config.Nodes[0].Client.AddHook(late)
	<-late.carriedOut
	extend(ttl)
	close(late.heard)
	<-late.again // so the answer has been read
	if left := time.Until(lease.(strategies.Timed).ValidUntil()); left > ttl {
		t.Errorf("extended to %v, it is said to be valid for %v", ttl, left)
	}
	trial.Release(t, lease)
}

// subscribed returns how many connections are subscribed to exactly one channel.
func subscribed(t testing.TB, outside redis.UniversalClient) int {
	t.Helper()
	list, err := outside.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, " sub=1 ")
}

// In pubsub-broadcast a release must wake every waiter of every process, and each of them must try once: a thundering
// herd.
func TestReleaseWakesEveryWaiter(t *testing.T) {
	const waiters = 10
	server, outside, holder := begin(t, "pubsub-broadcast", time.Minute)
	lease := holder.Acquire(t, "key")
	both := []trial.Process{
		trial.Start(t, server, "pubsub-broadcast", time.Minute),
		trial.Start(t, server, "pubsub-broadcast", time.Minute),
	}
	parked := trial.Park(t, waiters, both...)
	if n := subscribed(t, outside); n != 2*waiters {
		t.Errorf("%d connections subscribe for %d waiters", n, 2*waiters)
	}
	for left := 2 * waiters; left > 0; left-- {
		before := trial.Total(both...)
		trial.Release(t, lease)
		lease = parked.Next(t)
		poll.Until(t, "all who wait have tried", func() bool {
			now := trial.Total(both...)
			return now.Useful-before.Useful == 1 && now.Futile-before.Futile == int64(left-1) &&
				now.Attempts-before.Attempts == int64(left)
		})
	}
	trial.Release(t, lease)
	poll.Until(t, "no subscription is left", func() bool { return subscribed(t, outside) == 0 })
	if got, want := trial.Total(both...).Attempts, int64(2*2*waiters+waiters*(2*waiters+1)); got != want {
		t.Errorf("%d attempts, want %d: two for each waiter before it parks, one for each wake-up", got, want)
	}
}

// Prepare must open a connection for each expected waiter. Later waiters must reuse the connections of earlier ones.
func TestConnectionsAreKept(t *testing.T) {
	const callers = 5
	server := redistest.Start(t)
	outside := server.Client(t)
	connections := func() int { return strings.Count(outside.ClientList(t.Context()).Val(), "\n") }
	config := trial.Config(t, server)
	config.Callers = callers
	locker, err := goredis.Open(trial.Variant(t, "pubsub-broadcast"), config)
	if err != nil {
		t.Fatal(err)
	}
	p := trial.Process{Locker: locker, Config: config}
	before := connections()
	if err := locker.(strategies.Preparer).Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	const pool = 1 // for commands
	if n := connections() - before; n != callers+pool {
		t.Errorf("%d connections were opened for %d callers, and one for commands", n, callers)
	}
	for range 3 {
		lease := p.Acquire(t, "key")
		parked := trial.Park(t, callers, p)
		for range callers {
			trial.Release(t, lease)
			lease = parked.Next(t)
		}
		// A waiter that leaves does not wait for the reply to UNSUBSCRIBE, so its connection may still be subscribed for a
		// moment.
		poll.Until(t, "no subscription is left", func() bool { return subscribed(t, outside) == 0 })
		trial.Release(t, lease)
	}
	if n := strings.Count(outside.ClientList(t.Context()).Val(), " cmd=unsubscribe "); n != callers {
		t.Errorf("%d connections have served %d waiters three times", n, callers)
	}
	if err := locker.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	poll.Until(t, "the connections are closed", func() bool {
		return !strings.Contains(outside.ClientList(t.Context()).Val(), "subscribe")
	})
}
