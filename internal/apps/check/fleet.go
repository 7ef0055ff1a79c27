package check

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// fleet is the list of servers of one check, one for each node of the lock.
type fleet []*redisserver.Pair

// startFleet starts one server per node. If a server does not start, startFleet closes the other servers.
func startFleet(ctx context.Context, nodes int) (all fleet, err error) {
	for range nodes {
		one, err := start(ctx)
		if err != nil {
			all.close(context.WithoutCancel(ctx))
			return nil, err
		}
		all = append(all, redisserver.NewPair(one, start))
	}
	return all, nil
}

// nodes returns a goredis.Node for each server. The checks can inject faults into all connections of these nodes.
func (f fleet) nodes() (nodes []goredis.Node) {
	for _, one := range f {
		nodes = append(nodes, goredis.Node{Options: &redis.UniversalOptions{
			Addrs: []string{one.Addr()}, Dialer: one.Dial, MaxRetries: -1, DialerRetries: 1, PipelinePoolSize: -1,
			DisableIdentity: true, ContextTimeoutEnabled: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}})
	}
	return nodes
}

// furnish sets the servers of a fixture, and the fixture's functions that inject faults into these servers.
func (f fleet) furnish(ctx context.Context, fixture *locktest.Fixture) {
	each := func(do func(*redisserver.Pair, context.Context) error) func() error {
		return func() error {
			var problems []error
			for _, one := range f {
				problems = append(problems, do(one, ctx))
			}
			return errors.Join(problems...)
		}
	}
	fixture.Nodes = f.nodes
	fixture.Pause = each(func(p *redisserver.Pair, ctx context.Context) error { return p.Pause(ctx) })
	fixture.Resume = each(func(p *redisserver.Pair, ctx context.Context) error { return p.Resume(ctx) })
	fixture.Kill = func(node int) error { return f[node].Kill(ctx) }
	fixture.Revive = func(node int) error { return f[node].Restart(ctx) }
	fixture.Failover = each((*redisserver.Pair).FailOverAsSentinel)
}

func (f fleet) close(ctx context.Context) {
	for _, one := range f {
		_ = one.Close(ctx) // the verdict of the check is already known
	}
}

func start(ctx context.Context) (*servers.Own, error) {
	return servers.StartOwn(ctx, servers.Options{RunID: store.NewRunID()})
}
