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
	// A connection is dead if it does not answer a ping, sent after silence without data, within
	// unheard. silence is the shortest that gRPC allows, and etcd refuses more frequent pings.
	silence = 10 * time.Second
	unheard = 3 * time.Second
)

// clientConfig returns the configuration of all clients. Only what is safe is retried.
func clientConfig(to address) clientv3.Config {
	return clientv3.Config{
		Endpoints: to.endpoints, Username: to.user, Password: to.password, TLS: to.tls,
		DialTimeout: dialTimeout, DialKeepAliveTime: silence, DialKeepAliveTimeout: unheard,
		MaxUnaryRetries: 1, Logger: zap.NewNop(),
	}
}

// observing makes a client reconnect soon after a lost server returns.
func observing(config clientv3.Config, options ...grpc.DialOption) clientv3.Config {
	quick := backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}
	config.DialOptions = append(append(config.DialOptions, options...),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: dialTimeout}))
	return config
}

// dial makes a client whose connections are counted and take the detours. Its error means that
// etcd refuses the user, or occurs before there is a connection.
func dial(config clientv3.Config, traffic *intercept.Traffic, detours ...store.Through) (*clientv3.Client, error) {
	return clientv3.New(through(config, traffic, detours...))
}

// through makes a client's connections counted and lets them take the detours.
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

// ask sends a request that etcd answers only with the agreement of most members.
func ask(ctx context.Context, client *clientv3.Client) error {
	_, err := client.Get(ctx, nobody, clientv3.WithKeysOnly())
	return err
}

// nobody is a key that never exists.
const nobody = "lockbench:nobody"
