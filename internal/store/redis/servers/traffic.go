package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/lockbench/lockbench/internal/intercept"
)

// dialer opens connections with counted traffic. slots limits the dials at the same time: thousands
// would overflow the server's backlog.
func dialer(t *intercept.Traffic, config *tls.Config, slots chan struct{}) func(context.Context, string, string) (net.Conn, error) {
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
			return t.Conn(encrypted), nil
		}
		return t.Conn(conn), nil
	}
}
