package servers

import (
	"context"
	"fmt"
	"time"
)

const (
	// patience is how long to wait for a node that may be down.
	patience = time.Second
	// settleTimeout is how long replicas and clusters may take to settle.
	settleTimeout = time.Minute
)

// Settle waits until every replica, except detached ones, has what the primary had at that moment,
// and a cluster serves all its slots.
func (s *Server) Settle(ctx context.Context) error {
	kind := s.topology.row()
	if kind.settled == nil {
		return nil
	}
	if kind.nudge != nil {
		if err := kind.nudge(s, ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		err := kind.settled(s, ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: wait for %s: %w", ErrUnreachable, s.topology, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
