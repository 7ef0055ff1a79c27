package servers

import (
	"context"
	"fmt"
	"net"

	"github.com/lockbench/lockbench/internal/store"
)

// toPrimary dials the node that is the primary at that moment, whatever the
// address, as a name that follows a failover would. During one it waits, as for
// whoever decides who is next.
func (s *Server) toPrimary(dial store.Dialer) store.Dialer {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		s.failing.RLock()
		defer s.failing.RUnlock()
		return dial(ctx, network, s.primary.Load().addr())
	}
}

// Failover kills the primary of our own replicated topology and promotes the node that
// heir, called when it is dead, chooses by its place in Owned. That then has whatever it
// has received so far. The old primary can be restarted: it follows.
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

// Advanced is the place in Owned of the replica that has received the most, by its
// replication offset. Sentinel prefers it among replicas of one priority.
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
