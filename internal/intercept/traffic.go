package intercept

import (
	"net"
	"sync/atomic"
)

// Traffic counts what connections exchange with a server. With TLS it is put inside of it,
// and counts as the server does.
type Traffic struct {
	requests, written, read atomic.Int64
}

// Conn is a connection that counts.
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

// Requests are the writes so far: clients hand a command or a whole pipeline over in one.
func (t *Traffic) Requests() int64 { return t.requests.Load() }

// Written are the bytes sent so far.
func (t *Traffic) Written() int64 { return t.written.Load() }

// Read are the bytes received so far.
func (t *Traffic) Read() int64 { return t.read.Load() }
