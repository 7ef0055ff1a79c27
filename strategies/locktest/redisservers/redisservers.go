// Package redisservers starts Redis servers on which package locktest can try all its checks, including those with
// restarts, lost replies, dead nodes, failovers, clusters and changed clocks.
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) locktest.Fixture {
//			return redisservers.Fixture(t, info.Nodes, func(c goredis.Config) (strategies.Locker, error) {
//				return mylock.Open(c)
//			})
//		}, info)
//	}
//
// For each node it starts a redis-server, which must be on PATH, and stops it when the test ends. Servers whose clocks
// can be set also need a C compiler (cc). Without a C compiler, the checks that change clocks are not tried.
package redisservers

import (
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/testkit/realredis"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Fixture starts the given number of servers and returns a fixture with them, on which open opens a Locker. For a
// quorum, nodes should be more than a majority of the lock's nodes, because checks kill some of them. If a function of
// the fixture fails, it fails the test instead of returning an error.
func Fixture(t testing.TB, nodes int, open func(goredis.Config) (strategies.Locker, error)) locktest.Fixture {
	t.Helper()
	var all []*realredis.Server
	for range nodes {
		all = append(all, realredis.Start(t))
	}
	each := func(do func(*realredis.Server)) func() error {
		return func() error {
			for _, one := range all {
				do(one)
			}
			return nil
		}
	}
	f := locktest.Fixture{
		Open: open,
		Nodes: func() (nodes []goredis.Node) {
			for _, one := range all {
				options := *one.Node(t).Options
				options.Dialer = one.Dial
				nodes = append(nodes, goredis.Node{Options: &options})
			}
			return nodes
		},
		Pause:    each((*realredis.Server).Pause),
		Resume:   each((*realredis.Server).Resume),
		Kill:     func(node int) error { all[node].Kill(); return nil },
		Revive:   func(node int) error { all[node].Restart(t); return nil },
		Failover: each((*realredis.Server).FailOver),
		Cluster:  func() (locktest.Cluster, error) { return cluster(t), nil },
		Sentinel: func() (locktest.Sentinel, error) { return sentinel(t), nil },
	}
	if _, err := exec.LookPath("cc"); err == nil {
		f.Clock = func() (locktest.Clock, error) { return clock(t, nodes), nil }
	}
	return f
}

func connect(t testing.TB, options redis.UniversalOptions) goredis.Node {
	options.DisableIdentity, options.ContextTimeoutEnabled = true, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: &options}
}

func cluster(t testing.TB) locktest.Cluster {
	t.Helper()
	c := realredis.StartCluster(t)
	each := func(clients []*redis.Client) (nodes []goredis.Node) {
		for _, client := range clients {
			at := client.Options()
			nodes = append(nodes, connect(t, redis.UniversalOptions{Addrs: []string{at.Addr}, Password: at.Password}))
		}
		return nodes
	}
	return locktest.Cluster{
		Node:      connect(t, c.Options()),
		Primaries: each(c.Nodes),
		Move: func(pattern string) (finish func() error, err error) {
			m := c.Migrate(c.SlotOf(pattern))
			m.Carry(1)
			return func() error { m.Finish(); return nil }, nil
		},
		Die: func(pattern string) (kill func() ([]goredis.Node, error), err error) {
			die := c.Mortal(pattern)
			return func() ([]goredis.Node, error) { return each(die()), nil }, nil
		},
	}
}

func sentinel(t testing.TB) locktest.Sentinel {
	t.Helper()
	w := realredis.StartWatched(t)
	at := func(server int) goredis.Node {
		return connect(t, redis.UniversalOptions{Addrs: []string{w.Servers[server].Addr}})
	}
	options := w.UniversalOptions()
	options.MaxRetries, options.PipelinePoolSize = -1, -1
	return locktest.Sentinel{
		Node: goredis.Node{Options: options}, Old: at(0), New: at(1),
		Failover: func() error { w.KeepOld(); w.Failover(); return nil },
	}
}

func clock(t testing.TB, nodes int) locktest.Clock {
	t.Helper()
	var all []*realredis.Server
	var clocks []*realredis.Clock
	for range nodes {
		server, clock := realredis.StartSettable(t)
		all, clocks = append(all, server), append(clocks, clock)
	}
	return locktest.Clock{
		Nodes: func() (nodes []goredis.Node) {
			for _, server := range all {
				nodes = append(nodes, server.Node(t))
			}
			return nodes
		},
		Set: func(ahead time.Duration) error {
			for _, clock := range clocks {
				clock.Set(ahead)
			}
			return nil
		},
	}
}
