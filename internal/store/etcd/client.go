package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/store"
)

const (
	dialTimeout = 5 * time.Second
	// silence and unheard are after which a connection counts as dead: silence is the
	// shortest that gRPC does, and more often etcd does not want to be asked.
	silence = 10 * time.Second
	unheard = 3 * time.Second
)

// clientConfig is that of all clients of an etcd. Nothing is retried that is not safe.
func clientConfig(to address) clientv3.Config {
	return clientv3.Config{
		Endpoints: to.endpoints, Username: to.user, Password: to.password, TLS: to.tls,
		DialTimeout: dialTimeout, DialKeepAliveTime: silence, DialKeepAliveTimeout: unheard,
		MaxUnaryRetries: 1, Logger: zap.NewNop(),
	}
}

// observing has a client look for a server that went away as soon as it comes back.
func observing(config clientv3.Config, options ...grpc.DialOption) clientv3.Config {
	quick := backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}
	config.DialOptions = append(append(config.DialOptions, options...),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: dialTimeout}))
	return config
}

// dial makes a client whose connections are counted and take the detour, if there is one. Its
// error is of a user that is not let in; else it comes before there is a connection.
func dial(config clientv3.Config, traffic *intercept.Traffic, detours ...store.Through) (*clientv3.Client, error) {
	return clientv3.New(through(config, traffic, detours...))
}

// through has a client's connections be counted and take detours.
func through(config clientv3.Config, traffic *intercept.Traffic, detours ...store.Through) clientv3.Config {
	var connect store.Dialer = plain.DialContext
	if traffic != nil {
		direct := connect
		connect = func(ctx context.Context, network, addr string) (netConn, error) {
			conn, err := direct(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return traffic.Conn(conn), nil
		}
	}
	for _, detour := range detours {
		if detour != nil {
			connect = detour(connect)
		}
	}
	config.DialOptions = append(config.DialOptions, grpc.WithContextDialer(func(ctx context.Context, addr string) (netConn, error) {
		return connect(ctx, "tcp", addr)
	}))
	return config
}

// ask has an etcd answer with the consent of most of its members.
func ask(ctx context.Context, client *clientv3.Client) error {
	_, err := client.Get(ctx, nobody, clientv3.WithKeysOnly())
	return err
}

// nobody is a key that is never there.
const nobody = "lockbench:nobody"
