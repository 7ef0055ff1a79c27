package servers

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Count is the number of nodes, replicas included. Those of our own have the same
// places as in Owned.
func (s *Server) Count() int { return len(s.nodes) }

// Started says whether lockbench started the servers itself.
func (s *Server) Started() bool { return len(s.nodes) > 0 && s.nodes[0].own != nil }

// Ask has something done on a node, by its place, under the observer's name, so that
// it is not taken for the clients' doing.
func (s *Server) Ask(ctx context.Context, place int, do func(context.Context, redis.UniversalClient) error) error {
	if place < 0 || place >= len(s.nodes) {
		return fmt.Errorf("%w: there is no node %d, there are %d", ErrConfig, place, len(s.nodes))
	}
	return do(ctx, s.nodes[place].observer)
}

// CanSpare says whether locks can still be had without the nodes at these places.
func (s *Server) CanSpare(places ...int) bool {
	spares := s.topology.row().spares
	return spares != nil && spares(s, places)
}

// FirstHit is the place of the node that is hit where a fault names the first: that of the
// primary, whichever it is.
func (s *Server) FirstHit() int {
	if first := s.topology.row().firstHit; first != nil {
		return first(s)
	}
	return 0
}
