package servers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// each does something on every one of the nodes at the same time. Nodes that do
// not answer are no error as long as the others can do without them; they are
// passed over within a second.
func (s *Server) each(ctx context.Context, nodes []*node, do func(ctx context.Context, n *node) error) error {
	faults := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if s.dispensable(n) {
				faults[i] = n.ping(ctx, patience)
			}
			if faults[i] == nil {
				faults[i] = do(ctx, n)
			}
			if errors.Is(faults[i], ErrUnreachable) {
				n.ledger.miss()
			}
		})
	}
	wg.Wait()
	return s.bearable(nodes, faults)
}

// dispensable says whether the run may go on without the node, be it alone: a
// minority of independent nodes, a replica.
func (s *Server) dispensable(n *node) bool {
	dispensable := s.topology.row().dispensable
	return dispensable != nil && dispensable(s, n)
}

// bearable is nil if the nodes without a fault are enough to go on with.
func (s *Server) bearable(nodes []*node, faults []error) error {
	missing := 0
	var serious []error
	for i, fault := range faults {
		switch {
		case fault == nil:
		case s.dispensable(nodes[i]) && errors.Is(fault, ErrUnreachable):
			missing++
		default:
			serious = append(serious, fault)
		}
	}
	if enough := s.topology.row().enough; enough != nil && !enough(missing, len(nodes)) {
		return errors.Join(faults...)
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
	return s.each(ctx, s.nodes, func(ctx context.Context, n *node) error { return n.ping(ctx, 0) })
}
