package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/results"
)

// reach limits the time to reach a server.
const reach = 5 * time.Second

func (s *Server) open(ctx context.Context, o store.Options) error {
	asked, _ := parseTopology(o.Topology) // Validate has checked it
	if o.Started() {
		if err := s.start(ctx, o, max(asked, 1)); err != nil {
			return err
		}
	} else {
		launch.Sweep(ctx).Log(o.Logf)
		s.node, _ = parseAddress(o.Address) // Validate has checked it
	}
	if err := s.recognise(ctx, asked); err != nil {
		return err
	}
	for range s.node.Servers {
		s.counters = append(s.counters, new(restartCounters))
	}
	if err := s.watch(ctx); err != nil {
		return err
	}
	if len(s.own) == 0 {
		var left store.Swept
		s.keys().Look(ctx, &left)
		left.Tell(s.about.Address, o.Warn, o.Logf)
	}
	return s.pin.PinGenerator()
}

// start starts servers.
func (s *Server) start(ctx context.Context, o store.Options, members int) error {
	var err error
	if o.Pin {
		if s.pin, err = launch.NewPinning(); err != nil {
			return err
		}
	}
	m := member{durability: o.Durability, cpus: s.pin.ServerCPUs()}
	way, err := launch.Ways{
		Asked: o.Address, Image: image(o), Logf: o.Logf, ProcessFirst: true, // an image with Java is large
		InContainers: func(ctx context.Context, engine launch.Engine, image string) (string, error) {
			network := ""
			if members > 1 { // the members use this machine's loopback interface
				network = "host"
			}
			var err error
			s.own, err = startAll(ctx, members, m, func(ctx context.Context, m member) (launch.Started, error) {
				return m.contain(ctx, engine, image, network, s.runID, o)
			})
			if err != nil {
				return "", err
			}
			return s.own[0].Network(), nil
		},
		AsProcesses: func(ctx context.Context) error {
			found, err := lookUp()
			if err != nil {
				return err
			}
			m.software = found
			s.own, err = startAll(ctx, members, m, func(ctx context.Context, m member) (launch.Started, error) {
				return launch.Start(ctx, m.program(), m.pick, s.runID)
			})
			return err
		},
	}.Start(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	for _, o := range s.own {
		s.node.Servers = append(s.node.Servers, o.Addr())
	}
	s.about = results.Redis{Source: way.Source, Image: way.Image, Network: way.Network, Why: way.Why, Durability: string(store.Synced), PinnedCPUs: s.pin.ServerCPUs()}
	if o.Durability == store.InMemory {
		s.about.Durability = string(store.InMemory)
	}
	s.about.Why += "; it ticks every 100 ms, in place of 2 s"
	s.started = true
	return nil
}

// startAll starts servers on free ports; several form one ensemble.
func startAll(ctx context.Context, members int, m member, start func(context.Context, member) (launch.Started, error)) ([]launch.Started, error) {
	return ensemble.Start(ctx, members, 3, taken, func(ctx context.Context, place int, of [][]int) (launch.Started, error) {
		one := m
		one.id, one.port = place+1, of[place][0]
		if members > 1 {
			for _, p := range of {
				one.ensemble = append(one.ensemble, ports{quorum: p[1], election: p[2]})
			}
		}
		return start(ctx, one)
	})
}

// recognise asks the servers what they are.
func (s *Server) recognise(ctx context.Context, asked int) error {
	type told struct {
		status
		err error
	}
	all := make([]told, len(s.node.Servers))
	var asking sync.WaitGroup
	for i, addr := range s.node.Servers {
		asking.Go(func() { all[i].status, all[i].err = look(ctx, s.observe, addr) })
	}
	asking.Wait()
	var first *told
	var problems []error
	for i, one := range all {
		if one.err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.node.Servers[i], one.err))
			continue
		}
		if first == nil {
			first = &all[i]
		}
		if one.mode == "standalone" && len(all) > 1 {
			return fmt.Errorf("%w: %s is a server alone, and no member of an ensemble with the others", store.ErrConfig, s.node.Servers[i])
		}
	}
	if first == nil {
		err := errors.Join(problems...)
		for _, addr := range s.node.Servers {
			if stranger := store.Stranger(ctx, addr, name); stranger != nil {
				return stranger
			}
		}
		if errors.Is(err, errStranger) {
			return fmt.Errorf("%w: %w", store.ErrConfig, err)
		}
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	s.node.Standalone = first.mode == "standalone"
	s.members = s.count(ctx)
	if asked > 0 && asked != s.members {
		return fmt.Errorf("%w: --topology %s was asked for, and there is %s", store.ErrConfig, topologyOf(asked), topologyOf(s.members))
	}
	s.about.Name, s.about.Version = name, first.version
	s.about.Mode = "ensemble"
	if s.node.Standalone {
		s.about.Mode = "standalone"
	}
	s.about.Topology, s.about.Address = topologyOf(s.members), s.node.Servers[0]
	if len(s.node.Servers) > 1 {
		s.about.Nodes = s.node.Servers
	}
	if len(s.own) == 0 {
		s.about.Source, s.about.Network, s.about.Why = "address", store.NetworkTo(s.node.Servers[0]), "an address was given"
	}
	s.about.AllowedCPUs = s.cpus()
	return nil
}

// count returns the number of members: a user's address may omit some.
func (s *Server) count(ctx context.Context) int {
	members := len(s.node.Servers)
	for _, addr := range s.node.Servers {
		if s.node.Standalone {
			break
		}
		answer, _ := ask(ctx, s.observe, addr, "mntr")
		members = max(members, int(fields(answer)["zk_quorum_size"]))
	}
	return members
}

// cpus returns the CPUs on which the servers may run; nil if not known.
func (s *Server) cpus() []int {
	all := map[int]bool{}
	for _, o := range s.own {
		for _, cpu := range measure.Affinity(o.PID()) {
			all[cpu] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// watch opens the session that observes.
func (s *Server) watch(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	node := s.node
	node.Dial = s.observe
	var err error
	s.watching, err = openLink(within, node, s.label()+"observer")
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("%w: %w: create it, or give the address without it", store.ErrConfig, err)
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: %w: user or password is wrong, or this user may not do that: give it in the address or in %s", store.ErrConfig, err, authEnv)
	}
	if _, why := s.looks(ctx); why != nil { // the servers answered just before
		err = errors.Join(err, why)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}
