// Package intercept wraps connections, to count, delay or lose what goes over them.
package intercept

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Hooks are called in place of a connection's methods, and get the method, which they may
// call. A nil hook leaves its method as it is.
type Hooks struct {
	Read  func(b []byte, read func([]byte) (int, error)) (int, error)
	Write func(b []byte, write func([]byte) (int, error)) (int, error)
	Close func(hangUp func() error) error
	// Deadline stands before SetReadDeadline, SetWriteDeadline, and SetDeadline, which sets both.
	Deadline func(reads, writes bool, at time.Time, set func(time.Time) error) error
}

// Conn returns a connection with hooks. A library can still reach the socket
// (syscall.Conn), to find stale connections, and the connection below TLS (NetConn).
func Conn(c net.Conn, h Hooks) net.Conn {
	hooked := &conn{c, h} // a pointer, so that it can be compared
	if encrypted, ok := c.(interface{ NetConn() net.Conn }); ok {
		return overTLS{hooked, encrypted.NetConn()}
	}
	if socket, ok := c.(syscall.Conn); ok {
		return overSocket{hooked, socket}
	}
	return hooked
}

type conn struct {
	net.Conn
	hooks Hooks
}

func (c *conn) Read(b []byte) (int, error) {
	if c.hooks.Read == nil {
		return c.Conn.Read(b)
	}
	return c.hooks.Read(b, c.Conn.Read)
}

func (c *conn) Write(b []byte) (int, error) {
	if c.hooks.Write == nil {
		return c.Conn.Write(b)
	}
	return c.hooks.Write(b, c.Conn.Write)
}

func (c *conn) Close() error {
	if c.hooks.Close == nil {
		return c.Conn.Close()
	}
	return c.hooks.Close(c.Conn.Close)
}

func (c *conn) SetReadDeadline(at time.Time) error {
	return c.setDeadline(true, false, at, c.Conn.SetReadDeadline)
}

func (c *conn) SetWriteDeadline(at time.Time) error {
	return c.setDeadline(false, true, at, c.Conn.SetWriteDeadline)
}

func (c *conn) SetDeadline(at time.Time) error {
	return c.setDeadline(true, true, at, c.Conn.SetDeadline)
}

func (c *conn) setDeadline(reads, writes bool, at time.Time, set func(time.Time) error) error {
	if c.hooks.Deadline == nil {
		return set(at)
	}
	return c.hooks.Deadline(reads, writes, at, set)
}

type overSocket struct {
	*conn
	syscall.Conn
}

type overTLS struct {
	*conn
	below net.Conn
}

func (c overTLS) NetConn() net.Conn { return c.below }

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

// Traffic counts what connections exchange with a server. With TLS it counts the decrypted
// bytes, as the server does.
type Traffic struct {
	requests, written, read atomic.Int64
}

// Conn returns a connection that counts.
func (t *Traffic) Conn(c net.Conn) net.Conn {
	return Conn(c, Hooks{
		Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
			n, err := write(b)
			t.requests.Add(1)
			t.written.Add(int64(n))
			return n, err
		},
		Read: func(b []byte, read func([]byte) (int, error)) (int, error) {
			n, err := read(b)
			t.read.Add(int64(n))
			return n, err
		},
	})
}

// Through returns a dialer whose connections are counted.
func (t *Traffic) Through(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return t.Conn(conn), nil
	}
}

// Requests returns the number of writes so far: clients write a command or a whole
// pipeline at once.
func (t *Traffic) Requests() int64 { return t.requests.Load() }

// Written returns the bytes sent so far.
func (t *Traffic) Written() int64 { return t.written.Load() }

// Read returns the bytes received so far.
func (t *Traffic) Read() int64 { return t.read.Load() }
