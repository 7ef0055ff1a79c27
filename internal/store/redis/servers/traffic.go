package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/intercept"
)

// traffic counts what one application instance's connections exchange with
// Redis. With TLS it counts inside of it, as Redis does.
type traffic struct {
	requests atomic.Int64 // writes: go-redis hands a command or a whole pipeline over in one
	written  atomic.Int64 // bytes
	read     atomic.Int64
}

// counted is a connection that counts.
func (t *traffic) counted(c net.Conn) net.Conn {
	return intercept.Conn(c, intercept.Hooks{
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
			return t.counted(encrypted), nil
		}
		return t.counted(conn), nil
	}
}
