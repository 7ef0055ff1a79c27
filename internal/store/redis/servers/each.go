package servers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// onEveryNode calls do concurrently for every node. A node that does not answer is no error if the
// run can go on without it; such a node is skipped after a second.
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
				n.kept.Miss()
			}
		})
	}
	wg.Wait()
	return s.bearable(nodes, problems)
}

// dispensable says whether the run can go on without this node alone: one of several independent
// nodes, or a replica.
func (s *Server) dispensable(n *node) bool {
	dispensable := s.topology.row().dispensable
	return dispensable != nil && dispensable(s, n)
}

// bearable returns nil if enough nodes have no error.
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

// ping sends a PING to a node. within 0 means that only ctx and the connection limit the time.
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

// Ping returns nil if enough nodes answer to hold a lock: a majority of independent nodes, the
// primary, or all primaries of a cluster.
func (s *Server) Ping(ctx context.Context) error {
	return s.onEveryNode(ctx, s.nodes, func(ctx context.Context, n *node) error { return n.ping(ctx, 0) })
}
