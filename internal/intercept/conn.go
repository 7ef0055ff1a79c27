// Package intercept wraps connections, so that what goes over them can be counted, held up
// or lost.
package intercept

import (
	"net"
	"syscall"
)

// Hooks are called in place of a connection's methods, with the method itself, to be
// called or not. Those that are nil are left as they are.
type Hooks struct {
	Read  func(b []byte, read func([]byte) (int, error)) (int, error)
	Write func(b []byte, write func([]byte) (int, error)) (int, error)
	Close func(hangUp func() error) error
}

// Conn is a connection with hooks. What is below it stays reachable: a library that looks
// at the socket (syscall.Conn) to find stale connections still can, and so can one that
// looks below an encryption (NetConn, as of a tls.Conn).
func Conn(c net.Conn, h Hooks) net.Conn {
	hooked := &conn{c, h} // so that it can be compared
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

type overSocket struct {
	*conn
	syscall.Conn
}

type overTLS struct {
	*conn
	below net.Conn
}

func (c overTLS) NetConn() net.Conn { return c.below }
