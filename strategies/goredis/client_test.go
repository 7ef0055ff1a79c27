package goredis_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/lock"
)

// ours contains, by name, the constructors of the locks that open further Redis clients.
var ours = map[string]func(redis.UniversalClient, ...lock.Option) (*lock.FencedLocker, error){
	"handoff": handoff.New, "cohort": handoff.NewCohort,
}

// locker opens the named lock on client, as one process of a service does. The cleanup of the test closes the lock and
// the client.
func locker(t *testing.T, name string, client redis.UniversalClient) *lock.FencedLocker {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	locker, err := ours[name](client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	return locker
}

// A lock must store its keys on the server of the service's client, whether the client finds this server by an address,
// a socket's path, Sentinel or a cluster's slots.
func TestLockUsesTheClientsServer(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("Sentinel needs redis-server here: ", err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := redistest.Socket(t)
	relative, err := filepath.Rel(here, path)
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t, "--unixsocket", path)
	outside := server.Client(t)
	sentinels := []string{redistest.StartSentinel(t, server.Addr, time.Minute)}
	slots := []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: server.Addr}}}}
	for way, connect := range map[string]func() redis.UniversalClient{
		"by address": func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: server.Addr}) },
		"by relative path": func() redis.UniversalClient {
			return redis.NewClient(&redis.Options{Network: "unix", Addr: relative})
		},
		"by Sentinel": func() redis.UniversalClient {
			return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "lock", SentinelAddrs: sentinels})
		},
		"by Sentinel, with replicas": func() redis.UniversalClient {
			return redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "lock", SentinelAddrs: sentinels})
		},
		"by Sentinel, with the nearest": func() redis.UniversalClient {
			return redis.NewUniversalClient(&redis.UniversalOptions{
				MasterName: "lock", Addrs: sentinels,
				RouteByLatency: true,
			})
		},
		"by slots": func() redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil },
			})
		},
	} {
		for name := range ours {
			t.Run(way+"/"+name, func(t *testing.T) {
				a, b := locker(t, name, connect()), locker(t, name, connect())
				for _, process := range []*lock.FencedLocker{a, b, a} {
					lease, err := process.Acquire(t.Context(), "key")
					if err != nil {
						t.Fatal(err)
					}
					if n := outside.Exists(t.Context(), "lock:key").Val(); n != 1 {
						t.Error("the lock's key is not at the client's server")
					}
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// After a node of a cluster dies and the node's replica takes over, two processes must acquire the lock again within
// half a minute. Their clients reload the cluster's state only once an hour, so they must detect the change by failed
// connections.
func TestClusterNodeDies(t *testing.T) {
	top := redistest.StartTopology(t, "cluster:3")
	connect := func() *redis.ClusterClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: top.Addrs(), Password: top.Password(t), ClusterStateReloadInterval: time.Hour,
		})
	}
	client := connect()
	primary, err := client.MasterForKey(t.Context(), "lock:key")
	if err != nil {
		t.Fatal(err)
	}
	addr := primary.Options().Addr
	_, takeOver := redistest.ClusterOf(t, top).StartReplica(addr)
	a, b := locker(t, "handoff", client), locker(t, "handoff", connect())
	pass := func(ctx context.Context, process *lock.FencedLocker) error {
		lease, err := process.Acquire(ctx, "key", lock.TTL(2*time.Second))
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	if err := errors.Join(pass(t.Context(), a), pass(t.Context(), b)); err != nil {
		t.Fatal(err)
	}
	takeOver()
	promoted := time.Now()
	for _, process := range []*lock.FencedLocker{a, b} {
		poll.Until(t, "the lock is back", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return pass(ctx, process) == nil
		})
	}
	if took := time.Since(promoted); took > 30*time.Second { // two seconds on a machine with time
		t.Errorf("the lock was back %v after the promotion", took)
	}
}

// limiter is a redis.Limiter that allows every command and counts the commands.
type limiter struct{ asked atomic.Int64 }

func (l *limiter) Allow() error     { l.asked.Add(1); return nil }
func (*limiter) ReportResult(error) {}

// The commands of a lock must go through the Limiter of the service's client.
func TestLimiter(t *testing.T) {
	server := redistest.Start(t)
	limit := new(limiter)
	locker := locker(t, "handoff", redis.NewClient(&redis.Options{Addr: server.Addr, Limiter: limit}))
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if n := limit.asked.Load(); n < 1 {
		t.Error("the limiter did not see the acquire")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
