package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/results"
)

// start creates the nodes; it does not connect.
func (s *Server) start(ctx context.Context, options Options, wanted Topology) error {
	if !options.Started() {
		launch.Sweep(ctx).Log(options.Logf)
		return s.useAddresses(options)
	}
	// Every user of this machine reaches the loopback interface.
	s.password = rand.Text()
	options.password = s.password
	way, err := launch.Ways{
		Asked: options.Address, Image: image(options.wantedImage()), Logf: options.Logf,
		InContainers: func(ctx context.Context, engine launch.Engine, image string) (string, error) {
			return s.useContainers(ctx, engine, image, options, wanted)
		},
		AsProcesses: func(ctx context.Context) error { return s.useProcesses(ctx, options, wanted) },
	}.Start(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	s.redis = results.Redis{Source: way.Source, Image: way.Image, Network: way.Network, Why: way.Why}
	return nil
}

func (s *Server) useContainers(ctx context.Context, engine launch.Engine, image string, options Options, wanted Topology) (network string, err error) {
	run := func(network string) (*Container, error) {
		return startContainer(ctx, engine, options, image, network, wanted.row().picker(), s.pin.ServerCPUs(), options.settings(wanted)...)
	}
	first, err := run("")
	if err != nil {
		return "", err
	}
	s.own(wanted, first)
	if first.Network() != "host" && wanted.row().linked {
		return "", errors.Join(s.giveUp(ctx), errors.New("containers can only reach each other on the host's network, which there is none of: use --redis process"))
	}
	others, err := several(ctx, wanted.Servers()-1, func() (*Container, error) { return run(first.Network()) })
	if err != nil {
		return "", errors.Join(err, s.giveUp(ctx))
	}
	for _, c := range others {
		s.own(wanted, c)
	}
	return first.Network(), nil
}

func (s *Server) useProcesses(ctx context.Context, options Options, wanted Topology) error {
	processes, err := several(ctx, wanted.Servers(), func() (*Process, error) {
		return options.startProcess(ctx, wanted.row().picker(), s.pin.ServerCPUs(), options.settings(wanted)...)
	})
	if errors.Is(err, exec.ErrNotFound) && options.Program == "" {
		return fmt.Errorf("there is no redis-server (%w): apt-get install redis-server, give an address with --redis redis://host:port, or start Docker", exec.ErrNotFound)
	}
	if err != nil {
		return err
	}
	for _, p := range processes {
		s.own(wanted, p)
	}
	return nil
}

// several starts n servers concurrently. If one fails, it closes the others.
func several[T Own](ctx context.Context, n int, start func() (T, error)) ([]T, error) {
	started := make([]T, n)
	problems := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { started[i], problems[i] = start() })
	}
	wg.Wait()
	err := errors.Join(problems...)
	if err == nil {
		return started, nil
	}
	for i, server := range started {
		if problems[i] == nil {
			err = errors.Join(err, server.Close(ctx))
		}
	}
	return nil, err
}

// own adds a started server as a node.
func (s *Server) own(topology Topology, started Own) {
	s.topology = topology
	n := &node{options: redis.UniversalOptions{Addrs: []string{started.Addr()}, Password: s.password}, own: started}
	if member := topology.row().member; member != nil {
		n.own = member(s, n, started)
	}
	s.nodes = append(s.nodes, n)
}

// giveUp closes what was started, so that another way can be tried.
func (s *Server) giveUp(ctx context.Context) error {
	started := s.Owned()
	s.nodes = nil
	return launch.Each(ctx, started, Own.Close)
}
