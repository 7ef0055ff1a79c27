package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/strategies"
)

// clustered is the arrangement of a Redis Cluster.
type clustered struct{ single } //nolint:unused // it inherits the methods of single

func (clustered) settings() []string                { return redisserver.ClusterSettings() }
func (clustered) ports() ([]int, error)             { return redisserver.ClusterPorts() }
func (clustered) linked() bool                      { return true }
func (clustered) unfit(info strategies.Info) string { return info.NoCluster }

func (clustered) spares(_ *Server, away []*node) bool {
	return !slices.ContainsFunc(away, func(n *node) bool { return n.role != replica })
}

// arrange distributes the slots evenly over empty nodes and joins the nodes into a cluster.
func (clustered) arrange(ctx context.Context, s *Server) error {
	var members []redisserver.Member
	for _, n := range s.nodes {
		members = append(members, n.member())
	}
	return redisserver.Join(ctx, members)
}

func (n *node) member() redisserver.Member {
	return redisserver.Member{Addr: n.addr(), Client: n.observer}
}

// settled returns an error unless every node sees the complete cluster.
func (clustered) settled(ctx context.Context, s *Server) error {
	for _, n := range s.nodes {
		err := n.member().Sees(ctx, s.topology.Count)
		if err != nil && !refused(err) { // a managed cluster may refuse the command
			return err
		}
	}
	return nil
}

// findCluster replaces the nodes that the user named with all nodes of the cluster, as the first of the named nodes
// announces them.
func (s *Server) findCluster(ctx context.Context, runID string) error {
	seeds := s.nodes
	seed := seeds[0]
	if seed.options.DB != 0 {
		return fmt.Errorf("%w: a cluster has only database 0, not %d", ErrConfig, seed.options.DB)
	}
	slots, err := seed.observer.ClusterSlots(ctx).Result()
	unnamed := func(n redis.ClusterNode) bool { return strings.HasPrefix(n.Addr, "?:") }
	nowhere := func(slot redis.ClusterSlot) bool { return slices.ContainsFunc(slot.Nodes, unnamed) }
	switch {
	case errors.Is(err, redis.Nil), slices.ContainsFunc(slots, nowhere): // the node announces no host
		err = errEndpoints
	case err == nil && len(slots) == 0:
		err = errors.New("the cluster has no slots assigned yet")
	}
	if err != nil {
		return fmt.Errorf("%w: read the cluster nodes from %s: %w", ErrConfig, seed.addr(), err)
	}
	ids := map[string]bool{}
	s.nodes = nil
	primaries := 0
	for _, replicas := range [...]bool{false, true} { // primaries first
		for _, slot := range slots {
			for i, announced := range slot.Nodes {
				if (i > 0) != replicas || ids[announced.ID] {
					continue
				}
				ids[announced.ID] = true
				n := &node{options: seed.options}
				n.options.Addrs = []string{announcedAddr(announced.Addr, seed.addr())}
				if i == 0 {
					primaries++
				}
				s.nodes = append(s.nodes, n)
			}
		}
	}
	s.topology = Topology{Clustered, primaries}
	for i, n := range s.nodes {
		if err := n.open(ctx, &s.meter, runID, s.dials); err != nil {
			return errors.Join(fmt.Errorf("%w (the cluster at %s announces that address)", err, seed.addr()),
				disconnect(seeds))
		}
		n.role = primary
		if i >= primaries {
			n.role = replica
		}
	}
	return disconnect(seeds)
}

// announcedAddr returns the address of an announced node. If the announcement contains no host, the node is assumed to
// have the seed's host.
func announcedAddr(announced, seed string) string {
	host, port, err := net.SplitHostPort(announced)
	if err != nil || host != "" {
		return announced
	}
	host, _, _ = net.SplitHostPort(seed)
	return net.JoinHostPort(host, port)
}
