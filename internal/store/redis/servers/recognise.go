package servers

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// useAddresses adds the user's nodes; recognise identifies them later.
func (s *Server) useAddresses(options Options) error {
	addresses, err := options.addresses()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	for _, at := range addresses {
		s.nodes = append(s.nodes, &node{options: *at})
	}
	first := s.nodes[0]
	s.redis = results.Redis{
		Source: "address", Network: store.NetworkTo(first.addr()), TLS: first.options.TLSConfig != nil, Why: "its address was given",
	}
	return nil
}

// recognise finds out what is at the user's addresses, and checks that it is what was requested.
func (s *Server) recognise(ctx context.Context, runID string, asked Topology) error {
	clustered := 0
	seen := map[string]*node{}
	for _, n := range s.nodes {
		if other := seen[n.runID]; n.runID != "" && other != nil {
			return fmt.Errorf("%w: %s and %s are the same Redis", ErrConfig, other.addr(), n.addr())
		}
		seen[n.runID] = n
		if n.software.Mode == "cluster" {
			clustered++
		}
	}
	var err error
	switch clustered {
	case 0:
		err = s.findReplicas()
	case len(s.nodes):
		err = s.findCluster(ctx, runID)
	default:
		err = fmt.Errorf("%w: %d of the %d addresses are nodes of a cluster, the others are not", ErrConfig, clustered, len(s.nodes))
	}
	if err == nil && !asked.admits(s.topology) {
		err = fmt.Errorf("%w: --topology %s was asked for, but what is at the addresses is %s", ErrConfig, asked, s.topology)
	}
	return err
}

// findReplicas distinguishes independent nodes from a primary with its replicas.
func (s *Server) findReplicas() error {
	var primaries, replicas []*node
	for _, n := range s.nodes {
		if n.role == replica {
			replicas = append(replicas, n)
		} else {
			primaries = append(primaries, n)
		}
	}
	switch {
	case len(replicas) == 0 && len(primaries) == 1:
		s.topology = Topology{Kind: Single}
	case len(replicas) == 0:
		s.topology = Topology{Independent, len(primaries)}
	case len(primaries) != 1:
		return fmt.Errorf("%w: %s is a replica: give its primary's address, alone or with those of its replicas", ErrConfig, replicas[0].addr())
	default:
		for _, n := range replicas {
			if n.replID != primaries[0].replID {
				return fmt.Errorf("%w: %s is not a replica of %s, or not in sync with it", ErrConfig, n.addr(), primaries[0].addr())
			}
		}
		s.topology = Topology{Replicated, len(replicas)}
		s.nodes = slices.Concat(primaries, replicas)
		s.primary.Store(primaries[0])
	}
	return nil
}
