package engine

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/lockbench/lockbench/internal/store"
)

// sockets are a run's connections. cut closes them: then every client that waits for a
// dead server returns, even inside a library.
type sockets struct {
	mu    sync.Mutex
	gone  error
	open  []net.Conn
	prune int // prune closed connections when there are this many
}

// fewest is the number of connections below which pruning is not worthwhile.
const fewest = 1024

// through is a store.Through that registers connections and does not change them.
func (s *sockets) through(dial store.Dialer) store.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := s.add(conn); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		return conn, nil
	}
}

func (s *sockets) add(conn net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return s.gone
	}
	if len(s.open) >= max(s.prune, fewest) {
		s.open = slices.DeleteFunc(s.open, closed)
		s.prune = 2 * len(s.open)
	}
	s.open = append(s.open, conn)
	return nil
}

// cut closes all connections, and refuses new ones.
func (s *sockets) cut(why error) {
	s.mu.Lock()
	open := s.open
	s.gone, s.open = why, nil
	s.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close()
	}
}

// closed says whether this side has closed a connection, if the type shows it.
func closed(conn net.Conn) bool {
	if encrypted, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = encrypted.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}
