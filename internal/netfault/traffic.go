package netfault

// This file defines Traffic, which counts the bytes and requests of connections.

import (
	"context"
	"net"
	"sync/atomic"
)

// Traffic counts the bytes and requests that connections exchange with a server. With TLS it counts the decrypted
// bytes, as Redis does.
type Traffic struct {
	requests, written, read atomic.Int64
}

// Conn returns c with hooks that add its traffic to the counts.
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

// Through returns a Dialer whose connections add their traffic to the counts.
func (t *Traffic) Through(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return t.Conn(conn), nil
	}
}

// Requests returns the number of writes so far. It equals the number of requests, because a client sends a command or a
// whole pipeline in one write.
func (t *Traffic) Requests() int64 { return t.requests.Load() }

// Written returns the number of bytes sent so far.
func (t *Traffic) Written() int64 { return t.written.Load() }

// Read returns the number of bytes received so far.
func (t *Traffic) Read() int64 { return t.read.Load() }
