package all_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// TestFailovers writes to the file LOCKBENCH_FAILOVERS how locks come through failovers, with the
// clients that services have: 2 processes of 4 callers on one key, holds of 5 ms, a TTL of 3 s.
func TestFailovers(t *testing.T) {
	file := os.Getenv("LOCKBENCH_FAILOVERS")
	if file == "" {
		t.Skip("it takes minutes")
	}
	table := "| where | lock | longest gap s | grant after promotion s | holds | overlaps | losses |\n" +
		"|---|---|---|---|---|---|---|\n"
	for _, where := range []struct {
		name  string
		start func(*testing.T) (connect func() redis.UniversalClient, promote func())
	}{{"Sentinel", bySentinel}, {"cluster", byCluster}, {"replicas", byHand}} {
		for _, name := range []string{"handoff", "cohort", "redsync"} {
			t.Run(where.name+"/"+name, func(t *testing.T) {
				connect, promote := where.start(t)
				table += fmt.Sprintf("| %s | %s | %s |\n", where.name, name, failedOver(t, name, connect, promote))
			})
		}
	}
	if err := os.WriteFile(file, []byte(table), 0o644); err != nil { //nolint:gosec // a page
		t.Fatal(err)
	}
}

func bySentinel(t *testing.T) (connect func() redis.UniversalClient, promote func()) {
	primary := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	pair := trial.NewPair(t, primary, redistest.Start(t))
	pair.Replicate()
	addr := trial.StartSentinel(t, primary.Addr, time.Second)
	watcher := redis.NewSentinelClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = watcher.Close() })
	poll.Until(t, "Sentinel knows both", func() bool {
		replicas, err := watcher.Replicas(t.Context(), "lock").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	return func() redis.UniversalClient {
			return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "lock", SentinelAddrs: []string{addr}})
		}, func() {
			primary.Kill()
			poll.Until(t, "the replica is the primary", func() bool { return pair.Is(1, "master") })
		}
}

func byCluster(t *testing.T) (connect func() redis.UniversalClient, promote func()) {
	top := redistest.StartTopology(t, "cluster:3")
	one := func() *redis.ClusterClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: top.Addrs(), Password: top.Password(t)})
	}
	client := one()
	defer func() { _ = client.Close() }()
	primary, err := client.MasterForKey(t.Context(), "lock:key")
	if err != nil {
		t.Fatal(err)
	}
	_, takeOver := trial.StartReplica(t, top, primary.Options().Addr)
	return func() redis.UniversalClient { return one() }, takeOver
}

func byHand(t *testing.T) (connect func() redis.UniversalClient, promote func()) {
	pair := trial.StartPair(t)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return pair.Dial(ctx, network, address)
	}
	return func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: pair.Addr(0), Dialer: dial}) },
		func() { pair.FailOver("FAILOVER") }
}

// watched is what callers of a lock saw.
type watched struct {
	mu       sync.Mutex
	grants   []time.Time
	holder   int // the last to get the lock
	until    time.Time
	overlaps int
	losses   int // leases that were lost before they ran out
}

func (w *watched) granted(lease strategies.Lease) (holder int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Before(w.until) {
		w.overlaps++
	}
	w.until = now.Add(failoverTTL)
	if timed, ok := strategies.As[strategies.Timed](lease); ok {
		w.until = timed.ValidUntil()
	}
	w.grants, w.holder = append(w.grants, now), w.holder+1
	return w.holder
}

func (w *watched) released(holder int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder == holder {
		w.until = time.Time{}
	}
}

const failoverTTL = 3 * time.Second

// failedOver is a row's figures.
func failedOver(t *testing.T, name string, connect func() redis.UniversalClient, promote func()) string {
	w := new(watched)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var callers sync.WaitGroup
	for range 2 {
		client := connect()
		t.Cleanup(func() { _ = client.Close() })
		node, err := goredis.NodeOf(client)
		if err != nil {
			t.Fatal(err)
		}
		locker, err := goredis.Open(trial.Variant(t, name), goredis.Config{
			Nodes: []goredis.Node{node}, Prefix: "lock:", TTL: failoverTTL, Probe: &strategies.Probe{},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locker.Close() })
		for range 4 {
			callers.Go(func() { w.call(ctx, locker) })
		}
	}
	time.Sleep(2 * time.Second)
	promote()
	promoted := time.Now()
	since := func() (first time.Duration, longest time.Duration, holds int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, at := range w.grants {
			if i > 0 {
				longest = max(longest, at.Sub(w.grants[i-1]))
			}
			if first == 0 && at.After(promoted) {
				first = at.Sub(promoted)
			}
		}
		return first, longest, len(w.grants)
	}
	for end := promoted.Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if first, _, _ := since(); first > 0 && time.Since(promoted) > first+5*time.Second {
			break
		}
	}
	stop()
	callers.Wait()
	first, longest, holds := since()
	return fmt.Sprintf("%.2f | %.2f | %d | %d | %d", longest.Seconds(), first.Seconds(), holds, w.overlaps, w.losses)
}

// call has a caller get the lock again and again.
func (w *watched) call(ctx context.Context, locker strategies.Locker) {
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		lease, err := locker.Acquire(wait, "key")
		cancel()
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		got := time.Now()
		holder := w.granted(lease)
		time.Sleep(5 * time.Millisecond)
		w.released(holder)
		free, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		if err := lease.Release(free); errors.Is(err, strategies.ErrNotHeld) && time.Since(got) < failoverTTL/2 {
			w.mu.Lock()
			w.losses++
			w.mu.Unlock()
		}
		done()
	}
}
