package servers

import (
	"context"
	"fmt"
	"net"

	"github.com/lockbench/lockbench/internal/store"
)

// toPrimary dials the current primary instead of the given address, like a host name that follows
// a failover. During a failover it waits for its end.
func (s *Server) toPrimary(dial store.Dialer) store.Dialer {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		s.failing.RLock()
		defer s.failing.RUnlock()
		return dial(ctx, network, s.primary.Load().addr())
	}
}

// Failover kills the primary of our own replicated topology and then promotes the node whose place
// in Owned heir returns. That node has only what it had received. The old primary can be
// restarted; it becomes a replica.
func (s *Server) Failover(ctx context.Context, heir func(context.Context) (int, error)) error {
	if _, err := s.member(s.Primary()); err != nil {
		return err
	}
	s.failing.Lock()
	defer s.failing.Unlock()
	if err := s.primary.Load().own.Kill(ctx); err != nil {
		return err
	}
	place, err := heir(ctx)
	if err != nil {
		return err
	}
	return s.Promote(ctx, place)
}

// Advanced returns the place in Owned of the replica with the largest replication offset. Among
// replicas of the same priority, Sentinel prefers it too.
func (s *Server) Advanced(ctx context.Context) (int, error) {
	best, most := -1, int64(-1)
	for i, n := range s.nodes {
		if n == s.primary.Load() {
			continue
		}
		fields, err := readInfo(ctx, n.observer, "replication")
		if err != nil {
			return 0, fmt.Errorf("ask replica %s how much it has received: %w", n.addr(), err)
		}
		if received := fields.Integer("slave_repl_offset"); received != nil && *received > most {
			best, most = i, *received
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("%w: no replica tells how much it has received", ErrConfig)
	}
	return best, nil
}
