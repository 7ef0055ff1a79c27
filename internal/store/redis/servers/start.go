package servers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/results"
)

// start fills in the nodes, without connecting.
func (s *Server) start(ctx context.Context, options Options, wanted Topology) error {
	switch options.Address {
	case "", "auto":
		return s.startAny(ctx, options, wanted)
	case "container":
		if err := s.useContainers(ctx, options, wanted); err != nil {
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		s.redis.Why = "a container was asked for"
	case "process":
		if err := s.useProcesses(ctx, options, wanted); err != nil {
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		s.redis.Why = "a local process was asked for"
	default:
		return s.useAddresses(options)
	}
	return nil
}

// startAny takes the first way that works.
func (s *Server) startAny(ctx context.Context, options Options, wanted Topology) error {
	containerErr := s.useContainers(ctx, options, wanted)
	if containerErr == nil {
		s.redis.Why = "no address was given and Docker works"
		return nil
	}
	if image := options.wantedImage(); image != "" {
		return fmt.Errorf("%w: no container of the image asked for, %s: %s", ErrUnreachable, image, oneLine(containerErr))
	}
	options.logf("no container: %v", containerErr)
	processErr := s.useProcesses(ctx, options, wanted)
	if processErr == nil {
		s.redis.Why = "no address was given and no container could be had: " + oneLine(containerErr)
		return nil
	}
	if errors.Is(processErr, exec.ErrNotFound) {
		processErr = errors.New("there is no redis-server on PATH")
	}
	return fmt.Errorf("%w: %s; %s: give an address with --redis redis://host:port, install redis-server, or start Docker",
		ErrUnreachable, oneLine(containerErr), oneLine(processErr))
}

func (s *Server) useContainers(ctx context.Context, options Options, wanted Topology) error {
	engine, err := launch.OpenEngine(ctx)
	if err != nil {
		return err
	}
	options.logSweep(engine.Sweep(ctx))
	image, err := engine.Obtain(ctx, image(options.wantedImage()), options.logf)
	if err != nil {
		return err
	}
	run := func(network string) (*Container, error) {
		return startContainer(ctx, engine, options, image, network, wanted.row().picker(), s.pin.ServerCPUs(), options.settings(wanted)...)
	}
	first, err := run("")
	if err != nil {
		return err
	}
	s.own(wanted, first)
	if first.Network() != "host" && wanted.row().linked {
		return errors.Join(s.giveUp(ctx), errors.New("containers can only reach each other on the host's network, which there is none of: use --redis process"))
	}
	others, err := several(ctx, wanted.Servers()-1, func() (*Container, error) { return run(first.Network()) })
	if err != nil {
		return errors.Join(err, s.giveUp(ctx))
	}
	for _, c := range others {
		s.own(wanted, c)
	}
	s.redis = results.Redis{Source: "container", Image: image, Network: first.Network()}
	return nil
}

func (s *Server) useProcesses(ctx context.Context, options Options, wanted Topology) error {
	processes, err := several(ctx, wanted.Servers(), func() (*Process, error) {
		return startProcess(ctx, wanted.row().picker(), options.RunID, s.pin.ServerCPUs(), nil, options.settings(wanted)...)
	})
	if err != nil {
		return err
	}
	for _, p := range processes {
		s.own(wanted, p)
	}
	s.redis = results.Redis{Source: "process", Network: "loopback"}
	return nil
}

// several starts n servers at the same time. When one fails none stays.
func several[T Own](ctx context.Context, n int, start func() (T, error)) ([]T, error) {
	started := make([]T, n)
	faults := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { started[i], faults[i] = start() })
	}
	wg.Wait()
	err := errors.Join(faults...)
	if err == nil {
		return started, nil
	}
	for i, server := range started {
		if faults[i] == nil {
			err = errors.Join(err, server.Close(ctx))
		}
	}
	return nil, err
}

// own enters a server that was started.
func (s *Server) own(topology Topology, started Own) {
	s.topology = topology
	n := &node{options: redis.UniversalOptions{Addrs: []string{started.Addr()}}, own: started}
	if member := topology.row().member; member != nil {
		n.own = member(s, n, started)
	}
	s.nodes = append(s.nodes, n)
}

// giveUp ends what was started, so that another way can be tried.
func (s *Server) giveUp(ctx context.Context) error {
	var faults []error
	for _, node := range s.nodes {
		faults = append(faults, node.own.Close(ctx))
	}
	s.nodes = nil
	return errors.Join(faults...)
}

// oneLine makes one line of an error of several.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
