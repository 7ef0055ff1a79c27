package pubsub_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"runtime"
	"slices"
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
	"github.com/lockbench/lockbench/strategies/pubsub"
)

func init() { strategies.RegisterStrategy(pubsub.Strategy()) }

func TestConformance(t *testing.T) {
	trial.Conform(t, "pubsub", "pubsub:watchdog=false", "pubsub:pipeline=true")
}

// process is one instance, as a service would have it.
type process struct {
	*pubsub.Locker
	probe  *strategies.Probe
	client redis.UniversalClient
}

func open(t testing.TB, server *redistest.Server, ttl time.Duration, change ...func(goredis.Config)) process {
	t.Helper()
	config := trial.Config(t, server)
	config.TTL = ttl
	for _, f := range change {
		f(config)
	}
	locker, err := pubsub.Open(config, pubsub.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locker.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := locker.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return process{locker, config.Probe, config.Nodes[0].Client}
}

func acquire(t testing.TB, p process, key string) strategies.Lease {
	t.Helper()
	lease, err := p.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t testing.TB, lease strategies.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// next is the lease that a waiter gets.
func next(t testing.TB, leases <-chan strategies.Lease) strategies.Lease {
	t.Helper()
	select {
	case lease := <-leases:
		return lease
	case <-time.After(20 * time.Second):
		t.Fatal("no waiter got the lock: its wake-up was lost")
		return nil
	}
}

// park has n callers of each process wait for "key", and returns when each has made
// the two tries that precede parking. What they get goes to leases.
func park(t testing.TB, n int, leases chan<- strategies.Lease, processes ...process) *sync.WaitGroup {
	t.Helper()
	var all sync.WaitGroup
	var before []int64
	for _, p := range processes {
		before = append(before, p.probe.Counts().Attempts)
		for range n {
			all.Go(func() {
				lease, err := p.Acquire(t.Context(), "key")
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				leases <- lease
			})
		}
	}
	for i, p := range processes {
		poll.Until(t, "all waiters are parked", func() bool {
			commands := p.client.PoolStats()
			return p.probe.Counts().Attempts-before[i] == 2*int64(n) && commands.IdleConns == commands.TotalConns
		})
	}
	return &all
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	p := open(t, server, time.Minute)
	release(t, acquire(t, p, "key")) // opens the pool's connection
	outside := server.Client(t)
	var lease strategies.Lease
	acquired := locktest.Calls(t, outside, func() { lease = acquire(t, p, "key") })
	if want := map[string]int{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() { release(t, lease) })
	if want := map[string]int{"evalsha": 1, "hexists": 1, "hincrby": 1, "del": 1, "publish": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

// One release costs one wake-up and one attempt in each process that waits,
// however many waiters it has.
func TestReleaseWakesOneWaiterAProcess(t *testing.T) {
	for _, processes := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			const waiters = 10
			server := redistest.Start(t)
			holder := open(t, server, time.Minute)
			lease := acquire(t, holder, "key")
			var waiting []process
			for range processes {
				waiting = append(waiting, open(t, server, time.Minute))
			}
			leases := make(chan strategies.Lease, processes*waiters)
			all := park(t, waiters, leases, waiting...)

			for range processes * waiters {
				release(t, lease)
				lease = next(t, leases)
			}
			release(t, lease)
			all.Wait()
			const parking = 2 // attempts before a waiter parks
			releases := int64(processes * waiters)
			got := total(waiting)
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

func total(processes []process) (sum strategies.ProbeCounts) {
	for _, p := range processes {
		counts := p.probe.Counts()
		sum.Attempts += counts.Attempts
		sum.Useful += counts.Useful
		sum.Futile += counts.Futile
	}
	return sum
}

func TestOneSubscriptionAProcessAndLock(t *testing.T) {
	const waiters = 10
	const channel = "redisson_lock__channel:{trial:key}"
	server := redistest.Start(t)
	outside := server.Client(t)
	subscribers := func() int64 {
		counts, err := outside.PubSubNumSub(t.Context(), channel).Result()
		if err != nil {
			t.Fatal(err)
		}
		return counts[channel]
	}
	both := []process{open(t, server, time.Minute), open(t, server, time.Minute)}
	lease := acquire(t, both[0], "key")
	if n := subscribers(); n != 0 {
		t.Errorf("%d subscriptions while nobody waits", n)
	}
	leases := make(chan strategies.Lease, 2*waiters)
	var subscribes map[string]int
	var all *sync.WaitGroup
	subscribes = locktest.Calls(t, outside, func() { all = park(t, waiters, leases, both...) })
	if n := subscribers(); n != 2 || subscribes["subscribe"] != 2 {
		t.Errorf("%d subscriptions by %d SUBSCRIBEs for waiters in two processes, want 2 and 2", n, subscribes["subscribe"])
	}
	for range 2 * waiters {
		release(t, lease)
		lease = next(t, leases)
	}
	release(t, lease)
	all.Wait()
	poll.Until(t, "no subscription is left", func() bool { return subscribers() == 0 })
}

// A release between the first try and the subscription goes unheard: the second try
// must come after the subscription.
func TestTriesAgainAfterSubscribing(t *testing.T) {
	server := redistest.Start(t)
	p := open(t, server, time.Minute)
	lease := acquire(t, p, "key")
	monitor, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = monitor.Close() }()
	_ = monitor.SetDeadline(time.Now().Add(20 * time.Second))
	seen := bufio.NewScanner(monitor)
	if _, err := monitor.Write([]byte("MONITOR\r\n")); err != nil || !seen.Scan() {
		t.Fatalf("monitor: %v, %v", err, seen.Err())
	}
	leases := make(chan strategies.Lease, 1)
	all := park(t, 1, leases, p)
	release(t, lease)
	release(t, next(t, leases))
	all.Wait()
	var got []string
	for len(got) < 3 && seen.Scan() {
		for _, command := range []string{"evalsha", "subscribe"} {
			if strings.Contains(seen.Text(), `] "`+command+`"`) {
				got = append(got, command)
			}
		}
	}
	if want := []string{"evalsha", "subscribe", "evalsha"}; !slices.Equal(got, want) {
		t.Errorf("a waiter began with %q, want %q", got, want)
	}
}

// Blind waiters leave that try out, to show what it is for.
func TestBlindWaitersDoNotTryAgain(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	config := trial.Config(t, server)
	config.TTL = time.Minute
	options := pubsub.Defaults()
	options.Blind = true
	locker, err := pubsub.Open(config, options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locker.Close() }()
	p := process{locker, config.Probe, config.Nodes[0].Client}
	lease := acquire(t, p, "key")
	leases := make(chan strategies.Lease, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() { leases <- acquire(t, p, "key") })
	const channel = "redisson_lock__channel:{trial:key}"
	poll.Until(t, "it has subscribed", func() bool { return outside.PubSubNumSub(t.Context(), channel).Val()[channel] == 1 })
	release(t, lease)
	release(t, next(t, leases))
	waiting.Wait()
	if n := config.Probe.Counts().Attempts; n != 3 { // the holder's, the waiter's first, and the one that it was woken for
		t.Errorf("%d tries, want 3", n)
	}
}

// Waiters park for the PTTL; the last milliseconds of it are no reason to poll hot.
func TestDeadHolderCostsFewAttempts(t *testing.T) {
	trial.DeadHolderCostsFewAttempts(t, "pubsub", 2, func(server *redistest.Server, left time.Duration) error {
		return server.Client(t).Eval(t.Context(),
			`redis.call('HSET', KEYS[1], 'somebody:1', 1) return redis.call('PEXPIRE', KEYS[1], ARGV[1])`, []string{"trial:key"}, left.Milliseconds()).Err()
	})
}

// Ten thousand waiters must fit into a process: nothing runs for them but their
// own goroutines.
func TestWaitersCostNoGoroutines(t *testing.T) {
	const waiters = 2000
	server := redistest.Start(t)
	p := open(t, server, time.Hour)
	lease := acquire(t, p, "key")
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if lease, err := p.Acquire(ctx, "key"); err == nil {
				t.Error("a cancelled waiter got the lock")
				_ = lease.Release(context.Background())
			}
		})
	}
	poll.Until(t, "all waiters are parked", func() bool { return p.probe.Counts().Attempts == 1+2*waiters })
	// The pool may still be at work for some of them.
	poll.Until(t, "few goroutines run beside the waiters' own", func() bool {
		return runtime.NumGoroutine()-before-waiters <= 8
	})
	cancel()
	all.Wait()
	release(t, lease)
}

func TestHoldsSentTwice(t *testing.T) { trial.HoldsSentTwice(t, "pubsub:watchdog=false") }

func TestHoldsNotShortened(t *testing.T) { trial.HoldsNotShortened(t, "pubsub:watchdog=false") }

func TestShortenedUnheard(t *testing.T) { trial.ShortenedUnheard(t, "pubsub:watchdog=false") }

func TestReleasedLate(t *testing.T) { trial.ReleasedLate(t, "pubsub:watchdog=false") }
