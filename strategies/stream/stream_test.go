package stream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime"
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
	"github.com/lockbench/lockbench/strategies/stream"
)

func init() { strategies.RegisterStrategy(stream.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "stream") }

// process is one instance, as a service would have it.
type process struct {
	*stream.Locker
	probe *strategies.Probe
}

func open(t testing.TB, server *redistest.Server) process {
	t.Helper()
	return openWith(t, trial.Config(t, server))
}

func openWith(t testing.TB, config goredis.Config) process {
	t.Helper()
	config.TTL = time.Hour // nobody is woken by a lease that runs out
	locker, err := stream.Open(config, stream.Options{})
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
	return process{locker, config.Probe}
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

// park has n callers of each process wait for a key, and returns when all of them
// are waiting. What they get goes to leases.
func park(t testing.TB, server *redistest.Server, n int, key string, leases chan<- strategies.Lease, processes ...process) *sync.WaitGroup {
	t.Helper()
	var all sync.WaitGroup
	for _, p := range processes {
		for range n {
			all.Go(func() {
				lease, err := p.Acquire(t.Context(), key)
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				leases <- lease
			})
		}
	}
	outside := server.Client(t)
	poll.Until(t, "all wait", func() bool {
		waiting := outside.SCard(t.Context(), "{trial:"+key+"}:waiters").Val()
		return int(waiting) == n*len(processes) && len(readers(t, outside)) == len(processes)
	})
	return &all
}

// readers are the ids of the connections that block in an XREAD.
func readers(t testing.TB, outside *redis.Client) (ids []string) {
	t.Helper()
	list, err := outside.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(list) {
		if strings.Contains(line, " cmd=xread ") && strings.Contains(line, " flags=b ") {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			ids = append(ids, id)
		}
	}
	return ids
}

func killReaders(t testing.TB, outside *redis.Client) {
	t.Helper()
	for _, id := range readers(t, outside) {
		if err := outside.ClientKillByFilter(t.Context(), "ID", id).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// next is what a waiter hands over when it has got the lock.
func next[T any](t testing.TB, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody gets a lock that is free: a wake-up was lost")
	}
	return got
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	p := open(t, server)
	release(t, acquire(t, p, "key")) // opens the pool's connection
	outside := server.Client(t)
	var lease strategies.Lease
	acquired := locktest.Calls(t, outside, func() { lease = acquire(t, p, "key") })
	if want := map[string]int{"evalsha": 1, "set": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() { release(t, lease) })
	if want := map[string]int{"evalsha": 1, "get": 1, "del": 1, "pttl": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

// One release costs one wake-up and one attempt in each process that waits,
// however many waiters it has, and nothing is left in the end.
func TestReleaseWakesOneWaiterAProcess(t *testing.T) {
	for _, processes := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			const waiters = 10
			server := redistest.Start(t)
			lease := acquire(t, open(t, server), "key")
			var waiting []process
			for range processes {
				waiting = append(waiting, open(t, server))
			}
			leases := make(chan strategies.Lease, processes*waiters)
			all := park(t, server, waiters, "key", leases, waiting...)
			for range processes * waiters {
				release(t, lease)
				lease = next(t, leases)
			}
			release(t, lease)
			all.Wait()

			var got strategies.ProbeCounts
			for _, p := range waiting {
				counts := p.probe.Counts()
				got.Attempts += counts.Attempts
				got.Useful += counts.Useful
				got.Futile += counts.Futile
			}
			releases := int64(processes * waiters)
			if got.Useful != releases || got.Futile > releases*int64(processes-1) {
				t.Errorf("%d useful and %d futile wake-ups for %d releases, want one and at most %d for each",
					got.Useful, got.Futile, releases, processes-1)
			}
			if processes > 1 && got.Futile == 0 {
				t.Error("no other process was ever woken")
			}
			if want := releases + got.Useful + got.Futile; got.Attempts != want {
				t.Errorf("%d attempts, want %d: one before parking and one for each wake-up", got.Attempts, want)
			}
			if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 {
				t.Errorf("left behind: %q", keys)
			}
		})
	}
}

// An XREAD under way is made to read another lock's stream as well.
func TestReaderTakesUpAnotherLock(t *testing.T) {
	server := redistest.Start(t)
	p := open(t, server)
	a, b := acquire(t, p, "a"), acquire(t, p, "b")
	leases := make(chan strategies.Lease, 2)
	first := park(t, server, 1, "a", leases, p)
	outside := server.Client(t)
	ran := locktest.Calls(t, outside, func() {
		second := park(t, server, 1, "b", leases, p)
		release(t, b)
		release(t, next(t, leases))
		second.Wait()
	})
	if ran["client|unblock"] == 0 {
		t.Errorf("nothing interrupted the reader: %v", ran)
	}
	release(t, a)
	release(t, next(t, leases))
	first.Wait()
}

func TestReaderTakesUpAnotherLockWithoutTheRightToUnblock(t *testing.T) {
	server := redistest.Start(t)
	p := open(t, server)
	if err := server.Client(t).Do(t.Context(), "ACL", "SETUSER", "default", "-client|unblock").Err(); err != nil {
		t.Fatal(err)
	}
	a, b := acquire(t, p, "a"), acquire(t, p, "b")
	leases := make(chan strategies.Lease, 2)
	first, second := park(t, server, 1, "a", leases, p), park(t, server, 1, "b", leases, p)
	release(t, b)
	release(t, next(t, leases))
	second.Wait()
	release(t, a)
	release(t, next(t, leases))
	first.Wait()
}

// gate holds up new connections while it is shut.
type gate struct{ mu sync.RWMutex }

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// What is released while the reader has no connection it reads afterwards, from
// where it was; when some of that is gone everybody looks.
func TestReaderResumes(t *testing.T) {
	const waiters, releases = 10, 5
	for name, test := range map[string]struct {
		trim        bool
		least, most int64 // futile wake-ups: one may come of the new connection
	}{
		"nothing lost":   {false, 1, 2},
		"trimmed stream": {true, waiters, waiters + 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			outside := server.Client(t)
			holder := open(t, server)
			lease := acquire(t, holder, "key")

			var g gate
			config := trial.Config(t, server)
			options := *config.Nodes[0].Options
			options.Dialer = g.dial
			config.Nodes[0].Options = &options // the reader's; the pool has its own
			p := openWith(t, config)
			leases := make(chan strategies.Lease, waiters)
			all := park(t, server, waiters, "key", leases, p)

			g.mu.Lock()
			killReaders(t, outside)
			for range releases {
				release(t, lease)
				lease = acquire(t, holder, "key")
			}
			if test.trim {
				if err := outside.XTrimMaxLen(t.Context(), "{trial:key}:wakeups", 1).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if counts := p.probe.Counts(); counts.Useful+counts.Futile > 0 {
				t.Fatalf("%+v: somebody was woken while nothing could be heard", counts)
			}
			g.mu.Unlock()
			poll.Until(t, "what was told is heard", func() bool { return p.probe.Counts().Futile >= test.least })
			poll.Until(t, "it reads on", func() bool { return len(readers(t, outside)) == 1 })
			if n := p.probe.Counts().Futile; n > test.most {
				t.Errorf("%d futile wake-ups, want at most %d", n, test.most)
			}
			for range waiters {
				release(t, lease)
				lease = next(t, leases)
			}
			release(t, lease)
			all.Wait()
			if n := p.probe.Counts().Useful; n != waiters {
				t.Errorf("%d useful wake-ups, want %d", n, waiters)
			}
		})
	}
}

// A server that has forgotten the lock and who waits for it, which a new connection
// gives reason to look for: all of them get their turn.
func TestServerLosesItsMemory(t *testing.T) {
	const waiters = 5
	server := redistest.Start(t)
	outside := server.Client(t)
	lease := acquire(t, open(t, server), "key")
	p := open(t, server)
	leases := make(chan strategies.Lease, waiters)
	all := park(t, server, waiters, "key", leases, p)
	if err := outside.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	killReaders(t, outside)
	for range waiters {
		release(t, next(t, leases))
	}
	all.Wait()
	if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the release of a forgotten lock returned %v, want ErrNotHeld", err)
	}
	if keys := outside.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// A server that refuses to be read from is told to the waiters.
func TestRefusedReaderEndsTheWait(t *testing.T) {
	server := redistest.Start(t)
	p := open(t, server)
	if err := server.Client(t).Do(t.Context(), "ACL", "SETUSER", "default", "-xread").Err(); err != nil {
		t.Fatal(err)
	}
	lease := acquire(t, p, "key")
	if _, err := p.Acquire(t.Context(), "key"); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("a waiter got %v, want NOPERM", err)
	}
	release(t, lease)
	if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// Waiters park for the PTTL; the last milliseconds of it are no reason to poll hot.
func TestDeadHolderCostsFewAttempts(t *testing.T) {
	trial.DeadHolderCostsFewAttempts(t, "stream", 1, func(server *redistest.Server, left time.Duration) error {
		return server.Client(t).Set(t.Context(), "trial:key", "somebody", left).Err()
	})
}

// Ten thousand waiters must fit into a process: nothing runs for them but their
// own goroutines. Nor do they leave anything.
func TestWaitersCostNoGoroutines(t *testing.T) {
	const waiters = 2000
	server := redistest.Start(t)
	p := open(t, server)
	lease := acquire(t, p, "key")
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if _, err := p.Acquire(ctx, "key"); !errors.Is(err, context.Canceled) {
				t.Errorf("a cancelled waiter got %v", err)
			}
		})
	}
	outside := server.Client(t)
	poll.Until(t, "all wait", func() bool {
		return outside.SCard(t.Context(), "{trial:key}:waiters").Val() == waiters
	})
	// The pool may still be at work for some of them.
	poll.Until(t, "few goroutines run beside the waiters' own", func() bool {
		return runtime.NumGoroutine()-before-waiters <= 8
	})
	cancel()
	all.Wait()
	release(t, lease)
	if keys := outside.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

func TestClustersAreRefused(t *testing.T) {
	config := goredis.Config{TTL: time.Second, Nodes: []goredis.Node{{
		Options: &redis.UniversalOptions{Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}},
	}}}
	if _, err := stream.Open(config, stream.Options{}); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("a cluster was met with %v", err)
	}
}
