package servers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// onEveryNode does something on every one of the nodes at the same time. Nodes that do
// not answer are no error as long as the others can do without them; they are
// passed over within a second.
func (s *Server) onEveryNode(ctx context.Context, nodes []*node, do func(ctx context.Context, n *node) error) error {
	problems := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if s.dispensable(n) {
				problems[i] = n.ping(ctx, patience)
			}
			if problems[i] == nil {
				problems[i] = do(ctx, n)
			}
			if errors.Is(problems[i], ErrUnreachable) {
				n.kept.miss()
			}
		})
	}
	wg.Wait()
	return s.bearable(nodes, problems)
}

// dispensable says whether the run may go on without the node, be it alone: a
// minority of independent nodes, a replica.
func (s *Server) dispensable(n *node) bool {
	dispensable := s.topology.row().dispensable
	return dispensable != nil && dispensable(s, n)
}

// bearable is nil if the nodes without a fault are enough to go on with.
func (s *Server) bearable(nodes []*node, problems []error) error {
	missing := 0
	var serious []error
	for i, problem := range problems {
		switch {
		case problem == nil:
		case s.dispensable(nodes[i]) && errors.Is(problem, ErrUnreachable):
			missing++
		default:
			serious = append(serious, problem)
		}
	}
	if enough := s.topology.row().enough; enough != nil && !enough(missing, len(nodes)) {
		return errors.Join(problems...)
	}
	return errors.Join(serious...)
}

// ping asks a node for an answer; within 0 is for as long as ctx and connection
// allow.
func (n *node) ping(ctx context.Context, within time.Duration) error {
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	if err := n.observer.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("%w: ping %s: %w", ErrUnreachable, n.addr(), err)
	}
	return nil
}

// Ping says whether the nodes answer, or at least so many that a lock can still
// be held: a majority of independent ones, the primary, all a cluster's.
func (s *Server) Ping(ctx context.Context) error {
	return s.onEveryNode(ctx, s.nodes, func(ctx context.Context, n *node) error { return n.ping(ctx, 0) })
}
