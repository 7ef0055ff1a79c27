package blpop_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/blpop"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func init() { strategies.RegisterStrategy(blpop.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "blpop") }

func open(t testing.TB, config goredis.Config) *blpop.Locker {
	t.Helper()
	locker, err := blpop.Open(config, blpop.Options{})
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
	return locker
}

func acquire(t testing.TB, locker *blpop.Locker) strategies.Lease {
	t.Helper()
	lease, err := locker.Acquire(t.Context(), "key")
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

// blocked returns the number of clients that are blocked in BLPOP.
func blocked(t testing.TB, outside redis.UniversalClient) int {
	t.Helper()
	list, err := outside.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(list) {
		if strings.Contains(line, " cmd=blpop ") && strings.Contains(line, " flags=b ") {
			n++
		}
	}
	return n
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	locker := open(t, trial.Config(t, server))
	release(t, acquire(t, locker)) // opens the pool's connection
	outside := server.Client(t)
	var lease strategies.Lease
	acquired := locktest.Calls(t, outside, func() { lease = acquire(t, locker) })
	if want := map[string]int{"evalsha": 1, "set": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() { release(t, lease) })
	if want := map[string]int{"evalsha": 1, "get": 1, "del": 1, "exists": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

// Claim: one key cannot be both lock and signal, because SET makes a string and BLPOP needs a list. A waiter with the
// option one-key must fail with WRONGTYPE.
func TestLockAndSignalNeedTwoKeys(t *testing.T) {
	client := redistest.Start(t).Client(t)
	if err := client.SetNX(t.Context(), "key", "token", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	err := client.BLPop(t.Context(), time.Second, "key").Err()
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("BLPOP on the key of a SET returned %v, want WRONGTYPE", err)
	}
	config := trial.Config(t, redistest.Start(t))
	one, err := blpop.Open(config, blpop.Options{OneKey: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	held := acquire(t, one)
	if _, err := one.Acquire(t.Context(), "key"); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a waiter with one key ended with %v, want WRONGTYPE", err)
	}
	_ = held.Release(t.Context()) // the waiter that failed took the lock for the signal and deleted it
}

// The test deletes the lock and pushes two signals, although only one waiter blocks. The waiter pops one signal, and
// must delete the other one when it takes the lock.
func TestStaleSignalIsRemoved(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	locker := open(t, trial.Config(t, server))
	_ = acquire(t, locker)
	leases := make(chan strategies.Lease, 1)
	go func() { leases <- acquire(t, locker) }()
	poll.Until(t, "the waiter blocks", func() bool { return blocked(t, outside) == 1 })
	err := outside.Eval(t.Context(), `redis.call('DEL', KEYS[1]) return redis.call('RPUSH', KEYS[2], '1', '1')`,
		[]string{"trial:key", "{trial:key}:signal"}).Err()
	if err != nil {
		t.Fatal(err)
	}
	lease := <-leases
	if keys := outside.Keys(t.Context(), "*").Val(); len(keys) != 1 {
		t.Errorf("there are %q, want only the lock", keys)
	}
	release(t, lease)
}

// With signal=always, five releases without a waiter must leave five signals. A later waiter must make one failed
// attempt for each of them.
func TestSignalsPileUp(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	config := trial.Config(t, server)
	config.Probe = new(strategies.Probe)
	locker, err := blpop.Open(config, blpop.Options{Signal: "always"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	for range 5 {
		release(t, acquire(t, locker))
	}
	if n := outside.LLen(t.Context(), "{trial:key}:signal").Val(); n != 5 {
		t.Errorf("5 releases left %d signals", n)
	}
	held, before := acquire(t, locker), config.Probe.Counts().Attempts
	leases := make(chan strategies.Lease, 1)
	go func() { leases <- acquire(t, locker) }()
	poll.Until(t, "the waiter has popped them all", func() bool { return blocked(t, outside) == 1 })
	if tries := config.Probe.Counts().Attempts - before; tries != 6 {
		t.Errorf("the waiter tried %d times, want once and for each of 5 signals", tries)
	}
	release(t, held)
	release(t, <-leases)
}

// Eight waiters of two processes must be woken in the order in which they began to block. Each release must wake
// exactly one of them.
func TestReleaseWakesTheLongestWaiter(t *testing.T) {
	const waiters = 8
	server := redistest.Start(t)
	outside := server.Client(t)
	configs := []goredis.Config{trial.Config(t, server), trial.Config(t, server)}
	lockers := []*blpop.Locker{open(t, configs[0]), open(t, configs[1])}
	lease := acquire(t, lockers[0])
	order := make(chan int, waiters)
	leases := make(chan strategies.Lease, waiters)
	var all sync.WaitGroup
	for i := range waiters {
		all.Go(func() {
			lease, err := lockers[i%2].Acquire(t.Context(), "key")
			if err != nil {
				t.Errorf("acquire: %v", err)
				return
			}
			order <- i
			leases <- lease
		})
		poll.Until(t, "the waiter blocks", func() bool { return blocked(t, outside) == i+1 })
	}
	for want := range waiters {
		release(t, lease)
		select {
		case lease = <-leases:
		case <-time.After(20 * time.Second):
			t.Fatal("no waiter was woken")
		}
		if got := <-order; got != want {
			t.Errorf("waiter %d was woken when it was waiter %d's turn", got, want)
		}
	}
	release(t, lease)
	all.Wait()
	a, b := configs[0].Probe.Counts(), configs[1].Probe.Counts()
	got := strategies.ProbeCounts{Attempts: a.Attempts + b.Attempts, Useful: a.Useful + b.Useful, Futile: a.Futile +
		b.Futile}
	if want := (strategies.ProbeCounts{Attempts: 1 + 2*waiters, Useful: waiters}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// A cancelled wait must end even if the user has no right to send CLIENT UNBLOCK, and must leave no blocked connection.
func TestCancelWithoutTheRightToUnblock(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	if err := outside.Do(t.Context(), "ACL", "SETUSER", "lock", "on", ">secret", "~*", "&*", "+@all",
		"-client|unblock").Err(); err != nil {
		t.Fatal(err)
	}
	config := trial.Config(t, server)
	config.Nodes = []goredis.Node{{Client: redistest.Dial(t, "redis://lock:secret@"+server.Addr+"?max_retries=-1")}}
	locker := open(t, config)
	lease := acquire(t, locker)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := locker.Acquire(ctx, "key")
		done <- err
	}()
	poll.Until(t, "the waiter blocks", func() bool { return blocked(t, outside) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait returned %v", err)
	}
	poll.Until(t, "no client blocks", func() bool { return blocked(t, outside) == 0 })
	release(t, lease)
	release(t, acquire(t, locker))
}

func TestClustersAreRefused(t *testing.T) {
	cluster := redistest.DialCluster(t, "", "127.0.0.1:1")
	config := goredis.Config{TTL: time.Second, Nodes: []goredis.Node{{Client: cluster}}}
	if _, err := blpop.Open(config, blpop.Options{}); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("a cluster was met with %v", err)
	}
}
