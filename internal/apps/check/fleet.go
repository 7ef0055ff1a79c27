package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// fleet are the servers of a check.
type fleet []*node

// furnish gives a fixture the servers, and what can be done to them.
func (f fleet) furnish(ctx context.Context, fixture *locktest.Fixture) {
	each := func(do func(*node, context.Context) error) func() error {
		return func() error {
			var problems []error
			for _, one := range f {
				problems = append(problems, do(one, ctx))
			}
			return errors.Join(problems...)
		}
	}
	fixture.Nodes = func() (nodes []goredis.Node) {
		for _, one := range f {
			nodes = append(nodes, goredis.Node{Options: &redis.UniversalOptions{
				Addrs: []string{one.Addr()}, Dialer: one.dial, MaxRetries: -1, DialerRetries: 1, PipelinePoolSize: -1,
				DisableIdentity: true, ContextTimeoutEnabled: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			}})
		}
		return nodes
	}
	fixture.Pause = each(func(n *node, ctx context.Context) error { return n.Pause(ctx) })
	fixture.Resume = each(func(n *node, ctx context.Context) error { return n.Resume(ctx) })
	fixture.Kill = func(node int) error { return f[node].Kill(ctx) }
	fixture.Revive = func(node int) error { return f[node].Restart(ctx) }
	fixture.Failover = each((*node).failOver)
}

func (f fleet) close(ctx context.Context) {
	for _, one := range f {
		_ = one.Close(ctx) // its verdict is known
		if one.replica != nil {
			_ = one.replica.Close(ctx)
		}
	}
}

// node is a server that may get a replica.
type node struct {
	*servers.Own
	replica *servers.Own                // nil until it first fails over
	primary atomic.Pointer[servers.Own] // one of them
}

func startNode(ctx context.Context) (*node, error) {
	server, err := start(ctx)
	n := &node{Own: server}
	n.primary.Store(server)
	return n, err
}

func start(ctx context.Context) (*servers.Own, error) {
	return servers.StartOwn(ctx, servers.Options{RunID: store.NewRunID()}, "--repl-diskless-sync-delay", "0")
}

// dial dials the primary, as a name that follows it does.
func (n *node) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, n.primary.Load().Addr())
}

// failOver makes the replica the primary, with all that the primary had. It closes no connections. The first call
// starts the replica.
func (n *node) failOver(ctx context.Context) (err error) {
	if n.replica == nil {
		if n.replica, err = start(ctx); err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(n.Addr())
		if err != nil {
			return err
		}
		if _, err := told(ctx, n.replica, "REPLICAOF", host, port); err != nil {
			return err
		}
		if err := until(ctx, n.replica, "master_link_status:up"); err != nil {
			return err
		}
	}
	old, heir := n.primary.Load(), n.replica
	if old == heir {
		heir = n.Own
	}
	if _, err := told(ctx, old, "FAILOVER"); err != nil {
		return err
	}
	if err := errors.Join(until(ctx, heir, "role:master"), until(ctx, old, "role:slave")); err != nil {
		return err
	}
	n.primary.Store(heir)
	return nil
}

// told returns a server's answer to a command.
func told(ctx context.Context, server *servers.Own, command ...any) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = client.Close() }()
	text, err := client.Do(ctx, command...).Text()
	if err != nil {
		return "", fmt.Errorf("%v: %w", command[0], err)
	}
	return text, nil
}

// until waits until a server says that of its replication.
func until(ctx context.Context, server *servers.Own, state string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		text, err := told(ctx, server, "INFO", "replication")
		switch {
		case err != nil:
			return fmt.Errorf("wait for %s: %w", state, err)
		case strings.Contains(text, state):
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}
