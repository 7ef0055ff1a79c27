package servers

import (
	"context"
	"fmt"
	"slices"

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
	switch s.topology.Kind {
	case Independent:
		return len(places) <= (len(s.nodes)-1)/2
	case Replicated:
		return !slices.Contains(places, s.Primary())
	case Clustered:
		return !slices.ContainsFunc(places, func(place int) bool { return s.nodes[place].role != replica })
	default:
		return false
	}
}
