package servers

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// start starts the servers, or uses the user's addresses, and creates the nodes. It does not connect to the nodes.
func (s *Server) start(ctx context.Context, options Options, wanted Topology) error {
	if !options.Started() {
		launch.Sweep(ctx).Log(options.Logf)
		return s.useAddresses(ctx, options)
	}
	// Every user of this machine can reach the loopback interface, so the servers need a password.
	options.password = rand.Text()
	s.password = options.password
	fleet := options.fleet(wanted.kind().arrangement)
	fleet.Members = wanted.Servers()
	way, started, err := fleet.Start(ctx, launch.Request{
		Address: options.Address, Image: options.Image, Logf: options.Logf,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	s.redis = results.Redis{Source: way.Source, Image: way.Image, Network: way.Network, Why: way.Why}
	s.topology = wanted
	for _, one := range started {
		n := &node{options: redis.UniversalOptions{Addrs: []string{one.Addr()}, Password: s.password}}
		n.own = &Own{
			Started: one, Password: s.password,
			Rejoin: func(ctx context.Context) error { return s.rejoin(ctx, n) },
		}
		s.nodes = append(s.nodes, n)
	}
	return nil
}

// Own is a Redis that lockbench started, and can therefore kill, pause and restart.
type Own = redisserver.Own

// StartOwn starts a Redis with the extra arguments args. It starts a process, which is faster than a container. If
// redis-server is not installed, it starts a container. The caller closes it.
func StartOwn(ctx context.Context, options Options, args ...string) (*Own, error) {
	own, err := redisserver.Start(ctx, options.program(), args...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return own, nil
}

// program converts the options that concern one server to the options of package redisserver.
func (o Options) program() redisserver.Options {
	return redisserver.Options{Program: o.Program, Image: o.Image, Env: o.Env, Password: o.password, Logf: o.Logf}
}

// fleet describes how to start one node. args follow the other settings and override them.
func (o Options) fleet(a arrangement, args ...string) launch.Fleet {
	fleet := o.program().Fleet(slices.Concat(a.settings(), persistence(o.Durability), args)...)
	fleet.Linked, fleet.Ports = a.linked(), a.ports
	return fleet
}

// persistence returns the settings for an append-only file. d selects whether Redis syncs the file once a second, which
// is Redis's default, or before each reply.
func persistence(d store.Durability) []string {
	switch d {
	case store.Usual:
		return []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	case store.Synced:
		return []string{"--appendonly", "yes", "--appendfsync", "always"}
	default:
		return nil
	}
}
