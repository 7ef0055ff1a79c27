package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/strategies/gozk"
	"github.com/lockbench/lockbench/workloads"
)

// Server is the ZooKeeper of a session. It implements store.Server.
type Server struct {
	ensemble.Servers
	node     gozk.Node  // connections opened through it are not counted
	counters []counters // by server
	watching *link

	mu   sync.Mutex
	open map[string]*netfault.Conns // connections by name
}

// Begin implements ensemble.Server. It finds or starts the servers.
func (s *Server) Begin(ctx context.Context, o store.Options) error {
	if s.Started {
		if err := s.start(ctx, o); err != nil {
			return err
		}
	} else {
		s.node, _ = parseAddress(o.Address) // Validate has checked it
		s.Find(ctx, o, s.node.Servers...)
	}
	s.counters = make([]counters, len(s.node.Servers))
	if err := s.recognise(ctx); err != nil {
		return err
	}
	return s.watch(ctx)
}

// readAllStatus requests the status of all servers. Only the status of a server that serves requests contains a mode.
// err reports that too few servers serve requests for locks to work.
func (s *Server) readAllStatus(ctx context.Context) (all []status, err error) {
	all, problems := make([]status, len(s.node.Servers)), make([]error, len(s.node.Servers))
	var asking sync.WaitGroup
	for i, addr := range s.node.Servers {
		asking.Go(func() {
			if all[i], problems[i] = s.countedStatus(ctx, addr); problems[i] != nil {
				problems[i] = fmt.Errorf("%s: %w", addr, problems[i])
			}
		})
	}
	asking.Wait()
	serving := 0
	for _, one := range all {
		if one.mode != "" {
			serving++
		}
	}
	// A member that serves requests is in contact with a majority, so one such member of a user's ensemble is enough.
	if serving <= len(s.Own)/2 {
		err = fmt.Errorf("%w: %w", ErrUnreachable, errors.Join(problems...))
	}
	return all, err
}

// recognise determines whether the servers are a single server or an ensemble, and records their members and version
// for Describe.
func (s *Server) recognise(ctx context.Context) error {
	all, err := s.readAllStatus(ctx)
	if err != nil {
		return err
	}
	alone := slices.IndexFunc(all, func(one status) bool { return one.mode == "standalone" })
	if alone >= 0 && len(all) > 1 {
		return fmt.Errorf("%w: %s is a standalone server, not a member of an ensemble with the other servers",
			store.ErrConfig, s.node.Servers[alone])
	}
	s.Members, s.About.Mode = len(all), "standalone"
	if alone < 0 {
		s.About.Mode = "ensemble"
		for _, addr := range s.node.Servers { // the address may omit some members
			answer, _ := ask(ctx, s.observe, addr, "mntr") // not every server permits mntr
			s.Members = max(s.Members, int(number(fields(answer)["zk_quorum_size"])))
		}
		s.About.Nodes = slices.Clip(s.node.Servers)
		if len(all) == 1 {
			s.About.Nodes = nil
		}
	}
	for _, one := range all {
		s.About.Version = cmp.Or(s.About.Version, one.version)
	}
	s.About.Name, s.About.Topology, s.About.Address = name, s.Topology(), s.node.Servers[0]
	return nil
}

// watch opens the session of lockbench's own observation, and verifies that the user may create nodes.
func (s *Server) watch(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	s.watching = &link{node: s.node}
	s.watching.node.Dial = s.observe
	err := s.watching.scratch(within, s.RunID, func(*gozk.Session, string) error { return nil })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("%w: %w: create the root node, or give an address without a root node", store.ErrConfig, err)
	case refusal(err) != "":
		return fmt.Errorf("%w: %w: user or password is wrong, or the user may not create nodes: "+
			"give user:password in the address or in %s", store.ErrConfig, err, authEnv)
	}
	if _, why := s.readAllStatus(ctx); why != nil { // the servers were serving a moment ago
		err = errors.Join(err, why)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// RunIDs returns one ID per server: address and process ID if lockbench started it, "" for a user's server.
func (s *Server) RunIDs() []string {
	ids := make([]string, len(s.node.Servers))
	for i, o := range s.Own {
		ids[i] = fmt.Sprintf("%s/%d", o.Addr(), o.PID())
	}
	return ids
}

// Ping returns an error if too few servers serve requests for locks to work.
func (s *Server) Ping(ctx context.Context) error {
	_, err := s.readAllStatus(ctx)
	return err
}

// Settle waits until every server that lockbench started is serving requests. For servers of a user it does not wait:
// it checks a single time whether enough of them are serving.
func (s *Server) Settle(ctx context.Context) error {
	if err := s.Servers.Settle(ctx, s.Ping, ready); err != nil {
		return err
	}
	if _, err := s.watching.children(ctx, cmp.Or(s.node.Root, "/")); err != nil {
		return fmt.Errorf("%w: list the nodes below the root: %w", ErrUnreachable, err)
	}
	return nil
}

// Close ends the session, and removes the servers that Open started.
func (s *Server) Close(ctx context.Context) error {
	if s.watching != nil {
		s.watching.close()
	}
	return s.Servers.Close(ctx)
}

// Faults returns an Injector for the faults of a workload.
func (s *Server) Faults(all []workloads.Fault) store.Injector {
	return ensemble.Faults{Layout: s.Layout, Network: network.New(all), Own: s.Own, Leader: s.leader}
}

// leader returns the leader. It returns nil if there is no leader or the leader is in away.
func (s *Server) leader(ctx context.Context, away []launch.Started) launch.Started {
	for _, o := range s.Own {
		if slices.Contains(away, o) {
			continue
		}
		if status, err := s.countedStatus(ctx, o.Addr()); err == nil && status.mode == "leader" {
			return o
		}
	}
	return nil
}
