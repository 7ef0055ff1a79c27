package postgres

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockbench/lockbench/strategies"
)

// sockets are all connections that a Locker has dialled and not closed. pgx cleans up for up
// to 15 s after a connection broke, unless its socket is closed.
type sockets struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// socket is one of them.
type socket struct {
	net.Conn
	of *sockets
}

// Close forgets it too.
func (c *socket) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// through dials as before, and keeps the connection.
func (s *sockets) through(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		kept := &socket{conn, s}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			_ = conn.Close()
			return nil, fmt.Errorf("dial %s: %w", addr, strategies.ErrClosed)
		}
		if s.open == nil {
			s.open = map[net.Conn]struct{}{}
		}
		s.open[kept] = struct{}{}
		return kept, nil
	}
}

// close closes all connections except those, and prevents new ones.
func (s *sockets) close(but map[net.Conn]bool) {
	s.mu.Lock()
	s.closed = true
	var all []net.Conn
	for conn := range s.open {
		if !but[conn] {
			all = append(all, conn)
		}
	}
	s.mu.Unlock()
	for _, conn := range all {
		_ = conn.Close()
	}
}
