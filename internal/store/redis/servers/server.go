// Package servers provides the Redis of a run: containers or processes of its
// own, or servers of the user's, which it never changes.
package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Server is the Redis of a run: one node or several, see Topology. It is safe
// for concurrent use.
type Server struct {
	topology Topology
	// nodes are the Redis servers one by one, each with its observer: those of a
	// cluster too, replicas too. The first primary comes first.
	nodes []*node
	// primary is the node that takes the commands of a replicated topology; nil in
	// others.
	primary atomic.Pointer[node]
	failing sync.RWMutex // held by a failover
	// cluster reaches the keys of a cluster wherever they are; nil for others.
	cluster *redis.ClusterClient

	redis results.Redis
	pin   *launch.Pinning
	dials chan struct{} // held while dialing

	mu      sync.Mutex
	traffic []*intercept.Traffic // one an instance, of closed ones too

	observed observed // by ourselves, all nodes
}

// Open finds or starts the Redis that the options name, sweeps what a killed
// lockbench left behind, connects to it, and waits until it is whole: replicas
// in sync, a cluster's slots served. The error wraps ErrUnreachable or ErrConfig.
func Open(ctx context.Context, options Options) (*Server, error) {
	asked, err := ParseTopology(options.Topology)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s := &Server{dials: make(chan struct{}, dialsAtOnce)}
	if options.Pin {
		if s.pin, err = launch.NewPinning(); err != nil {
			return nil, err
		}
	}
	if err := s.open(ctx, options, asked); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	if s.nodes[0].own == nil {
		options.logSwept(s.sweep(ctx, openBudget))
	}
	s.describe()
	s.redis.Durability = s.nodes[0].durability(ctx)
	s.redis.AllowedCPUs = s.serverCPUs(ctx)
	return s, nil
}

func (s *Server) open(ctx context.Context, options Options, asked Topology) error {
	if err := s.start(ctx, options, asked.usual()); err != nil {
		return err
	}
	for _, node := range s.nodes {
		if err := node.open(ctx, &s.observed, options.RunID, s.dials); err != nil {
			return err
		}
	}
	if s.nodes[0].own != nil {
		if arrange := s.topology.row().arrange; arrange != nil {
			if err := arrange(s, ctx); err != nil {
				return fmt.Errorf("%w: %w", ErrUnreachable, err)
			}
		}
	} else if err := s.recognise(ctx, options.RunID, asked); err != nil {
		return err
	}
	if s.topology.row().whole {
		s.cluster = redis.NewClusterClient(s.clusterOptions(&s.observed.traffic, observerName(options.RunID), 1).Cluster())
		s.cluster.AddHook(&s.observed)
	}
	if err := s.Settle(ctx); err != nil {
		return err
	}
	return s.pin.PinGenerator()
}

// primaries are the nodes that hold the keys and take commands.
func (s *Server) primaries() []*node {
	if primary := s.primary.Load(); primary != nil {
		return []*node{primary}
	}
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return n.role == replica })
}

// describe completes what the report says of the server.
func (s *Server) describe() {
	first := s.nodes[0]
	s.redis.Address = first.addr()
	s.redis.Name, s.redis.Version, s.redis.Mode = first.software.name, first.software.version, first.software.mode
	s.redis.Protocol, s.redis.IOThreads = first.software.protocol, first.software.ioThreads
	s.redis.PinnedCPUs = s.pin.ServerCPUs()
	s.redis.Topology = s.topology.String()
	if len(s.nodes) > 1 {
		for _, node := range s.nodes {
			s.redis.Nodes = append(s.redis.Nodes, node.addr())
		}
	}
}

// Describe says which Redis it is and why, without any secret.
func (s *Server) Describe() results.Redis { return s.redis }

// Unfit is why a strategy cannot run there; "" if it can.
func (s *Server) Unfit(info strategies.Info) string { return s.topology.Unfit(info) }

// Topology says how many nodes of what kind there are.
func (s *Server) Topology() Topology { return s.topology }

// Independent is the number of nodes that know nothing of each other, which is
// what a quorum can be made of.
func (s *Server) Independent() int {
	return s.topology.row().independent(len(s.nodes))
}

// Primaries is the number of nodes that every instance connects to.
func (s *Server) Primaries() int { return len(s.primaries()) }

// GeneratorCPUs are the CPUs the generator was pinned to; nil without pinning.
func (s *Server) GeneratorCPUs() []int {
	return s.pin.GeneratorCPUs()
}

// Owned are the nodes lockbench started itself, to be killed and paused on
// purpose, the first primary first; empty for a user's server.
func (s *Server) Owned() []Own {
	var own []Own
	for _, node := range s.nodes {
		if node.own != nil {
			own = append(own, node.own)
		}
	}
	return own
}

// Close gives the generator its CPUs back, disconnects, and removes the servers
// that Open started. It works with a context that has ended.
func (s *Server) Close(ctx context.Context) error {
	problems := []error{s.pin.Unpin()}
	if s.cluster != nil {
		problems = append(problems, s.cluster.Close())
	}
	for _, node := range s.nodes {
		problems = append(problems, node.disconnect())
	}
	var wg sync.WaitGroup
	stopped := make([]error, len(s.nodes))
	for i, node := range s.nodes {
		if node.own != nil {
			wg.Go(func() { stopped[i] = node.own.Close(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(append(problems, stopped...)...)
}
