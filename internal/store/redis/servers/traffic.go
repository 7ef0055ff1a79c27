package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// traffic counts what one application instance's connections exchange with
// Redis. With TLS it counts inside of it, as Redis does.
type traffic struct {
	requests atomic.Int64 // writes: go-redis hands a command or a whole pipeline over in one
	written  atomic.Int64 // bytes
	read     atomic.Int64
}

// counted is a connection that counts.
type counted struct {
	net.Conn
	traffic *traffic
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.traffic.requests.Add(1)
	c.traffic.written.Add(int64(n))
	return n, err
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.read.Add(int64(n))
	return n, err
}

// countedSocket keeps the socket in sight: go-redis looks at it to find stale
// connections.
type countedSocket struct {
	counted
	syscall.Conn
}

// countedTLS shows what is below the encryption, as a tls.Conn does.
type countedTLS struct {
	counted
	below net.Conn
}

func (c countedTLS) NetConn() net.Conn { return c.below }

// dialer opens counted connections. slots bounds how many are being opened at a
// time: thousands at once would overflow the server's backlog.
func dialer(t *traffic, config *tls.Config, slots chan struct{}) func(context.Context, string, string) (net.Conn, error) {
	plain := net.Dialer{KeepAlive: 5 * time.Minute}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return nil, fmt.Errorf("wait to dial: %w", ctx.Err())
		}
		conn, err := plain.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if config != nil {
			encrypted := tls.Client(conn, config)
			if err := encrypted.HandshakeContext(ctx); err != nil {
				_ = conn.Close()
				return nil, err
			}
			return countedTLS{counted{encrypted, t}, conn}, nil
		}
		if socket, ok := conn.(syscall.Conn); ok {
			return countedSocket{counted{conn, t}, socket}, nil
		}
		return counted{conn, t}, nil
	}
}
