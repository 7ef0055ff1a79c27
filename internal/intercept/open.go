package intercept

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
)

// Open are the connections of one owner that nobody has closed yet. The zero value has none.
type Open struct {
	mu    sync.Mutex
	gone  error // why new ones are refused
	conns map[net.Conn]struct{}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Through returns a dialer whose connections are registered until they are closed.
func (o *Open) Through(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if conn, err = o.Add(conn, Hooks{}); err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		return conn, nil
	}
}

// Add registers a connection, and returns it with hooks. After Cut it closes the connection instead.
func (o *Open) Add(conn net.Conn, h Hooks) (net.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone != nil {
		_ = conn.Close()
		return nil, o.gone
	}
	if o.conns == nil {
		o.conns = map[net.Conn]struct{}{}
	}
	o.conns[conn] = struct{}{}
	then := h.Close
	h.Close = func(hangUp func() error) error {
		o.mu.Lock()
		delete(o.conns, conn)
		o.mu.Unlock()
		if then != nil {
			return then(hangUp)
		}
		return hangUp()
	}
	return Conn(conn, h), nil
}

// List returns the connections as they were dialled.
func (o *Open) List() []net.Conn {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.conns))
}

// Cut closes all connections, and refuses new ones.
func (o *Open) Cut(why error) {
	o.mu.Lock()
	open := o.conns
	o.gone, o.conns = why, nil
	o.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
}
