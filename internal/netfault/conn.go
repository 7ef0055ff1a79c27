package netfault

// This file defines Conn, which wraps a connection so that hooks replace some of its methods. Methods without a hook
// work as before.

import (
	"net"
	"syscall"
	"time"
)

// Hooks are called instead of a connection's methods. Each hook receives the original method and may call it. A method
// whose hook is nil is unchanged.
type Hooks struct {
	Read  func(b []byte, read func([]byte) (int, error)) (int, error)
	Write func(b []byte, write func([]byte) (int, error)) (int, error)
	Close func(hangUp func() error) error
	// Deadline replaces SetReadDeadline, SetWriteDeadline and SetDeadline. reads and writes tell which deadlines to set.
	Deadline func(reads, writes bool, at time.Time, set func(time.Time) error) error
}

// Conn returns c with hooks. A library can still reach the socket of c (syscall.Conn), to detect stale connections, and
// the connection below TLS (NetConn).
func Conn(c net.Conn, h Hooks) net.Conn {
	hooked := &conn{c, h} // a pointer, because Hooks are not comparable
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
