package netfault

// This file defines Conns, which records the open connections of one owner and can close all of them together.

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
)

// Conns is the set of one owner's open connections. The zero value is an empty set.
type Conns struct {
	mu    sync.Mutex
	gone  error // why new connections are refused; nil before Cut
	conns map[net.Conn]struct{}
}

// Through returns a Dialer whose connections are registered until they are closed.
func (c *Conns) Through(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if conn, err = c.Add(conn, Hooks{}); err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		return conn, nil
	}
}

// Add registers a connection until it is closed, and returns it with hooks. After Cut, Add closes the connection and
// returns the error that was passed to Cut.
func (c *Conns) Add(conn net.Conn, h Hooks) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		_ = conn.Close()
		return nil, c.gone
	}
	if c.conns == nil {
		c.conns = map[net.Conn]struct{}{}
	}
	c.conns[conn] = struct{}{}
	then := h.Close
	h.Close = func(hangUp func() error) error {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
		if then != nil {
			return then(hangUp)
		}
		return hangUp()
	}
	return Conn(conn, h), nil
}

// List returns the open connections, without their hooks.
func (c *Conns) List() []net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.conns))
}

// Cut closes all connections. From then on, Add and the Dialers from Through close each new connection and return the
// error `why`.
func (c *Conns) Cut(why error) {
	c.mu.Lock()
	open := c.conns
	c.gone, c.conns = why, nil
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
}
