// Package trial helps to test the strategies of this module. It starts a separate Redis for each test.
package trial

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/locktest/redisservers"
)

// Conform runs the conformance suite for the first of the given variants and, if LOCKBENCH_CONFORM is set, for all of
// them. Variants are written as on the command line.
func Conform(t *testing.T, variants ...string) {
	for _, name := range extent.Chosen(variants) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the checks wait most of the time
			variant := Variant(t, name)
			// All checks run one after the other on one fixture, because starting a server for each check would take as long as
			// the checks.
			fixture := Fixture(t, variant)
			locktest.Run(t, func(*testing.T) locktest.Fixture { return fixture }, variant.Info())
		})
	}
}

// Fixture returns the fixture of a variant for the conformance suite, with separate servers. A strategy with a quorum
// gets two nodes more than it needs. The fixture has clusters and settable clocks, which take seconds to start, only if
// thorough is true for the variant.
func Fixture(t testing.TB, variant strategies.Variant) locktest.Fixture {
	t.Helper()
	f := Everything(t, variant)
	f.Rounds = extent.Rounds()
	if !thorough(variant) {
		f.Cluster, f.Clock = nil, nil
	}
	return f
}

// Everything returns the same fixture as Fixture, but always with clusters and settable clocks.
func Everything(t testing.TB, variant strategies.Variant) locktest.Fixture {
	t.Helper()
	nodes := variant.Info().Nodes
	if nodes > 1 {
		nodes += 2
	}
	return redisservers.Fixture(t, nodes, func(c goredis.Config) (strategies.Locker, error) {
		return goredis.Open(variant, c)
	})
}

// thorough reports whether a variant is also tested on clusters and with settable clocks. It always returns true for
// one strategy of each way of waiting: polling, a subscription, and a queue in Redis. With LOCKBENCH_CONFORM=all it
// returns true for all variants.
func thorough(v strategies.Variant) bool {
	switch v.Name() {
	case "spin", "pubsub", "handoff":
		return true
	}
	return extent.Thorough()
}

// Variant parses the name of a variant, written as on the command line.
func Variant(t testing.TB, name string) strategies.Variant {
	t.Helper()
	variants, err := strategies.ParseVariants(name)
	if err != nil {
		t.Fatal(err)
	}
	return variants[0]
}

// Config returns the configuration of one instance of a strategy on a server, with a separate client and a probe.
func Config(t testing.TB, server *redistest.Server) goredis.Config {
	t.Helper()
	return configOn([]goredis.Node{server.Node(t)})
}

func configOn(nodes []goredis.Node) goredis.Config {
	return goredis.Config{Nodes: nodes, Prefix: "trial:", TTL: time.Minute, Probe: &strategies.Probe{}}
}

// Redis starts a server for an example function, which has no testing.T. It panics on an error.
func Redis() (address string, stop func()) {
	own, err := servers.StartOwn(context.Background(), servers.Options{RunID: "test"})
	if err != nil {
		panic(err)
	}
	return own.Addr(), func() { _ = own.Close(context.Background()) }
}

// Calm runs a test that a stalled machine can spoil. play multiplies its durations by times. If its timing was valid,
// play returns ""; otherwise it returns the reason, such as a lock that expired before a client waited for it. Calm
// calls play with times 1, 4 and then four times 16, until the timing is valid. A play that finds a fault of the lock
// must fail the test at once.
func Calm(t testing.TB, play func(times int) (spoilt string)) {
	t.Helper()
	for _, times := range []int{1, 4, 16, 16, 16, 16} {
		spoilt := play(times)
		if spoilt == "" {
			return
		}
		t.Logf("spoilt, with times multiplied by %d: %s", times, spoilt)
	}
	t.Error("the play was spoilt each time")
}

// patience is how long a test waits for one step before it fails.
const patience = 20 * time.Second

// Process is one opened instance of a strategy with its configuration, as in one process of a service.
type Process struct {
	strategies.Locker
	Config goredis.Config
}

// Start opens and prepares a variant on a server, and closes it when the test ends. The variant is written as on the
// command line.
func Start(t testing.TB, server *redistest.Server, variant string, ttl time.Duration) Process {
	t.Helper()
	return StartOn(t, []goredis.Node{server.Node(t)}, variant, ttl)
}

// StartOn opens and prepares a variant on the given nodes, and closes it when the test ends. The variant is written as
// on the command line.
func StartOn(t testing.TB, nodes []goredis.Node, variant string, ttl time.Duration) Process {
	t.Helper()
	config := configOn(nodes)
	config.TTL = ttl
	locker, err := goredis.Open(Variant(t, variant), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locker.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if p, ok := strategies.As[strategies.Preparer](locker); ok {
		if err := p.Prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return Process{locker, config}
}

// Counts returns the counts of the process's Probe.
func (p Process) Counts() strategies.ProbeCounts { return p.Config.Probe.Counts() }

// Acquire acquires the lock within patience and fails the test on an error.
func (p Process) Acquire(t testing.TB, key string) strategies.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := p.Ask(ctx, key)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lease
}

// Ask acquires the lock. If Redis has not replied, it tries again until ctx ends, as a service would. On a busy machine
// a reply can take longer than a lock waits for it.
func (p Process) Ask(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		lease, err := p.Locker.Acquire(ctx, key)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "Redis has not replied") {
			return lease, err
		}
	}
}

// Release releases the lease and fails the test on an error.
func Release(t testing.TB, lease strategies.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// Waiters are callers that wait for a lock in goroutines.
type Waiters struct {
	leases chan strategies.Lease
	all    sync.WaitGroup
}

// Park makes n callers of each process wait for the lock "key". It returns when each process has counted two tries for
// each caller, because a caller parks after its second try.
func Park(t testing.TB, n int, processes ...Process) *Waiters {
	t.Helper()
	return ParkOn(t, "key", n, processes...)
}

// ParkOn does the same as Park for the lock on the given key.
func ParkOn(t testing.TB, key string, n int, processes ...Process) *Waiters {
	t.Helper()
	w := &Waiters{leases: make(chan strategies.Lease, n*len(processes))}
	// At the end of the test, all waiters are cancelled and waited for, even if the test fails.
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); w.all.Wait() })
	before := make([]int64, len(processes))
	for i, p := range processes {
		before[i] = p.Counts().Attempts
		for range n {
			w.all.Go(func() {
				lease, err := p.Locker.Acquire(ctx, key)
				if err == nil {
					w.leases <- lease
				} else if ctx.Err() == nil {
					t.Errorf("acquire: %v", err)
				}
			})
		}
	}
	for i, p := range processes {
		poll.Until(t, "all waiters are parked", func() bool {
			return p.Counts().Attempts-before[i] >= 2*int64(n) // a spinning waiter keeps trying
		})
	}
	return w
}

// Next waits until a waiter gets the lock and returns its lease. The test fails if none does within patience.
func (w *Waiters) Next(t testing.TB) strategies.Lease {
	t.Helper()
	select {
	case lease := <-w.leases:
		return lease
	case <-time.After(patience):
		t.Fatal("no waiter got the lock: its wake-up was lost")
		return nil
	}
}

// Total sums the counts of the processes' Probes.
func Total(processes ...Process) (sum strategies.ProbeCounts) {
	for _, p := range processes {
		counts := p.Counts()
		sum.Attempts += counts.Attempts
		sum.Useful += counts.Useful
		sum.Futile += counts.Futile
	}
	return sum
}
