package tracking_test

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
	"github.com/lockbench/lockbench/strategies/tracking"
)

func init() { strategies.RegisterStrategy(tracking.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "tracking") }

// process is one instance, as a service would have it.
type process struct {
	*tracking.Locker
	probe *strategies.Probe
}

func open(t testing.TB, server *redistest.Server) process {
	t.Helper()
	return openWith(t, trial.Config(t, server))
}

func openWith(t testing.TB, config goredis.Config) process {
	t.Helper()
	config.TTL = time.Hour // nobody is woken by a lease that runs out
	locker, err := tracking.Open(config, tracking.Options{})
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

// grant is a lease and the process that got it.
type grant struct {
	strategies.Lease
	process int
}

// park has n callers of each process wait for "key", which the server's first SET has
// taken, and returns when each has found it so. What they get goes to grants.
func park(t testing.TB, outside *redis.Client, n int, grants chan<- grant, processes ...process) *sync.WaitGroup {
	t.Helper()
	var all sync.WaitGroup
	for i, p := range processes {
		for range n {
			all.Go(func() {
				lease, err := p.Acquire(t.Context(), "key")
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				grants <- grant{lease, i}
			})
		}
	}
	says(t, outside, "commandstats", fmt.Sprintf("cmdstat_set:calls=%d,", 1+n*len(processes)))
	return &all
}

// says waits until a section of INFO has that text.
func says(t testing.TB, outside *redis.Client, section, text string) {
	t.Helper()
	poll.Until(t, "INFO says "+text, func() bool {
		info, err := outside.Info(t.Context(), section).Result()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(info, text)
	})
}

// marked waits until Redis holds that many marks: one for each process that waits
// and has looked since the last change.
func marked(t testing.TB, outside *redis.Client, n int) {
	t.Helper()
	says(t, outside, "stats", fmt.Sprintf("tracking_total_items:%d\r\n", n))
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
	if want := map[string]int{"set": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() { release(t, lease) })
	if want := map[string]int{"evalsha": 1, "get": 1, "del": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

// One release costs one wake-up and one attempt in each process that waits,
// however many waiters it has, and one look where somebody waits on.
func TestReleaseWakesOneWaiterAProcess(t *testing.T) {
	for _, processes := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			const waiters = 6
			server := redistest.Start(t)
			outside := server.Client(t)
			lease := acquire(t, open(t, server), "key")
			var waiting []process
			left := map[int]int{} // waiters of each process
			for i := range processes {
				waiting = append(waiting, open(t, server))
				left[i] = waiters
			}
			grants := make(chan grant, processes*waiters)
			all := park(t, outside, waiters, grants, waiting...)
			var want strategies.ProbeCounts
			want.Attempts = int64(processes * waiters)
			for range processes * waiters {
				marked(t, outside, len(left))
				want.Attempts += int64(len(left))
				want.Useful++
				want.Futile += int64(len(left)) - 1
				release(t, lease)
				got := next(t, grants)
				lease = got
				if left[got.process]--; left[got.process] == 0 {
					delete(left, got.process)
				}
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
			if got != want {
				t.Errorf("counted %+v, want %+v", got, want)
			}
			marked(t, outside, 0)
		})
	}
}

// after calls do once, right after the client has got the reply to such a command.
type after struct {
	redis.Hook
	name string
	do   func()
	once sync.Once
}

func (a *after) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *after) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == a.name {
			a.once.Do(a.do)
		}
		return err
	}
}

func TestReleaseBetweenTryAndLook(t *testing.T) {
	server := redistest.Start(t)
	lease := acquire(t, open(t, server), "key")
	config := trial.Config(t, server)
	p := openWith(t, config)
	config.Nodes[0].Client.AddHook(&after{name: "set", do: func() { release(t, lease) }})
	release(t, acquire(t, p, "key"))
	if got, want := p.probe.Counts(), (strategies.ProbeCounts{Attempts: 2, Useful: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// gate holds up new connections while it is shut.
type gate struct{ mu sync.RWMutex }

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// kill kills the connections that have one of the flags of CLIENT LIST.
func kill(t testing.TB, outside *redis.Client, flags string) {
	t.Helper()
	list, err := outside.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for line := range strings.Lines(list) {
		fields := map[string]string{}
		for field := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		if strings.ContainsAny(fields["flags"], flags) {
			killed++
			if err := outside.ClientKillByFilter(t.Context(), "ID", fields["id"]).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if killed != len(flags) {
		t.Fatalf("%d connections have one of the flags %s, want %d", killed, flags, len(flags))
	}
}

// What happens while one of the connections, or both, are gone is found out as soon
// as they are back; and nobody is woken if nothing has happened.
func TestKilledConnections(t *testing.T) {
	const waiters = 5
	for name, flags := range map[string]string{"looking": "t", "hearing": "P", "both": "tP"} {
		for _, released := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, released %v", name, released), func(t *testing.T) {
				server := redistest.Start(t)
				outside := server.Client(t)
				var g gate
				config := trial.Config(t, server)
				options := *config.Nodes[0].Options
				options.Dialer = g.dial
				config.Nodes[0].Options = &options // those of its own connections; the pool has its own

				// Held by somebody who has no tracked connections.
				if err := outside.Set(t.Context(), "trial:key", "somebody", 0).Err(); err != nil {
					t.Fatal(err)
				}
				p := openWith(t, config)
				grants := make(chan grant, waiters)
				all := park(t, outside, waiters, grants, p)
				marked(t, outside, 1)

				g.mu.Lock()
				kill(t, outside, flags)
				free := func() {
					if err := outside.Del(t.Context(), "trial:key").Err(); err != nil {
						t.Fatal(err)
					}
				}
				if released {
					free()
				}
				if got := p.probe.Counts(); got.Useful+got.Futile > 0 {
					t.Errorf("%+v: somebody was woken while nothing could be heard", got)
				}
				g.mu.Unlock()
				if !released {
					poll.Until(t, "both connections are back", func() bool {
						list := outside.ClientList(t.Context()).Val()
						return strings.Contains(list, " flags=t ") && strings.Contains(list, " flags=P ")
					})
					// A connection's marks stay after its death, until they are used up.
					marked(t, outside, 1+strings.Count(flags, "t"))
					free()
				}
				for range waiters {
					release(t, next(t, grants))
				}
				all.Wait()
				if got := p.probe.Counts(); got.Useful != waiters {
					t.Errorf("%d useful wake-ups, want %d", got.Useful, waiters)
				}
			})
		}
	}
}

// Other changes than releases are no releases, and the next release is not missed.
func TestOtherChanges(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	holder, p := open(t, server), open(t, server)
	lease := acquire(t, holder, "key")
	grants := make(chan grant, 2)
	all := park(t, outside, 2, grants, p)
	marked(t, outside, 1)
	for i := range int64(3) {
		if err := lease.(strategies.Extender).Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "the change is told", func() bool { return p.probe.Counts().Futile == i+1 })
		marked(t, outside, 1)
	}
	if err := outside.FlushAll(t.Context()).Err(); err != nil { // told in another way
		t.Fatal(err)
	}
	release(t, next(t, grants))
	release(t, next(t, grants))
	all.Wait()
	if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release of a lock that was flushed returned %v", err)
	}
}

// A server that refuses to track is told to the waiters.
func TestRefusedTrackingEndsTheWait(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	if err := outside.Do(t.Context(), "ACL", "SETUSER", "default", "-client|tracking").Err(); err != nil {
		t.Fatal(err)
	}
	config := trial.Config(t, server)
	locker, err := tracking.Open(config, tracking.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	p := process{locker, config.Probe}
	lease := acquire(t, p, "key")
	if _, err := p.Acquire(t.Context(), "key"); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("a waiter got %v, want NOPERM", err)
	}
	if err := p.Prepare(t.Context(), nil); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("prepare returned %v, want NOPERM", err)
	}
	release(t, lease)
}

// A dead holder's lock is tried when it has run out, not polled.
func TestDeadHolderCostsFewAttempts(t *testing.T) {
	trial.DeadHolderCostsFewAttempts(t, "tracking", 1, func(server *redistest.Server, left time.Duration) error {
		return server.Client(t).Set(t.Context(), "trial:key", "somebody", left).Err()
	})
}

// Ten thousand waiters must fit into a process: nothing runs for them but their
// own goroutines.
func TestWaitersCostNoGoroutines(t *testing.T) {
	const waiters = 2000
	server := redistest.Start(t)
	outside := server.Client(t)
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
	says(t, outside, "commandstats", fmt.Sprintf("cmdstat_set:calls=%d,", 1+waiters))
	marked(t, outside, 1)
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
	if _, err := tracking.Open(config, tracking.Options{}); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("a cluster was met with %v", err)
	}
}
