package servers

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Count returns the number of nodes, including replicas. Nodes of our own have the same places
// as in Owned.
func (s *Server) Count() int { return len(s.nodes) }

// Started says whether lockbench started the servers itself.
func (s *Server) Started() bool { return len(s.nodes) > 0 && s.nodes[0].own != nil }

// Ask calls do with a client of a node, by its place. The client is the observer's, so its
// commands do not count as the clients'.
func (s *Server) Ask(ctx context.Context, place int, do func(context.Context, redis.UniversalClient) error) error {
	if place < 0 || place >= len(s.nodes) {
		return fmt.Errorf("%w: there is no node %d, there are %d", ErrConfig, place, len(s.nodes))
	}
	return do(ctx, s.nodes[place].observer)
}

// CanSpare says whether clients can still get locks without the nodes at these places.
func (s *Server) CanSpare(places ...int) bool {
	spares := s.topology.row().spares
	return spares != nil && spares(s, places)
}

// FirstHit returns the place of the node that a fault of node 0 hits: the current primary, if
// there are replicas.
func (s *Server) FirstHit() int {
	if first := s.topology.row().firstHit; first != nil {
		return first(s)
	}
	return 0
}
