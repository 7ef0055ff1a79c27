package servers

import (
	"context"
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

// Failover kills the primary of our own replicated topology and promotes the node at
// a place in Owned, which then has whatever it has received so far. The old
// primary can be restarted: it follows.
func (s *Server) Failover(ctx context.Context, heir int) error {
	if _, err := s.member(heir); err != nil {
		return err
	}
	s.failing.Lock()
	defer s.failing.Unlock()
	if err := s.primary.Load().own.Kill(ctx); err != nil {
		return err
	}
	return s.Promote(ctx, heir)
}
