package servers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/goredis"
)

const (
	dialTimeout = 5 * time.Second
	// readTimeout is longer than the 3 s for which a fault may stop a server.
	readTimeout = 10 * time.Second
	poolTimeout = 30 * time.Second
	// dialsAtOnce is below 511, the default length of Redis's backlog.
	dialsAtOnce = 128
	// bufferSize limits the buffers of 10,000 blocked connections to 80 MB. The locks' commands are short.
	bufferSize = 4 << 10
)

// Clients opens the clients of one application instance under the given CLIENT name, with filled command pools of the
// given size. The topology determines the number of clients: one per independent node, of which a minority may be down;
// one for the primary, which follows a promotion; or one for a whole cluster, with a pool per node. detour, unless nil,
// wraps every connection, including those that a strategy dials itself. The caller closes the clients.
func (s *Server) Clients(ctx context.Context, name string, pool int, detour store.Through) ([]goredis.Node, error) {
	t := s.meter.Instance()
	if detour == nil {
		detour = func(dial store.Dialer) store.Dialer { return dial }
	}
	at, optionsOf := s.primaries(), func(n *node) *redis.UniversalOptions {
		return n.clientOptions(t, name, pool, s.dials)
	}
	if s.topology.Kind == Clustered {
		at, optionsOf = at[:1], func(*node) *redis.UniversalOptions { return s.clusterOptions(t, name, pool) }
	}
	var nodes []goredis.Node
	for _, n := range at {
		options := optionsOf(n)
		options.Dialer = s.toPrimary(detour(options.Dialer))
		if n.watchers != nil { // a driver dials the address in these options
			if found, err := n.watchers.where(ctx); err == nil {
				options.Addrs = []string{found}
			}
		}
		nodes = append(nodes, goredis.Node{Client: redis.NewUniversalClient(options), Options: options, Files: n.files})
	}
	problems := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if err := fill(ctx, n.Client, pool); err != nil {
				if hungUp(err) { // the observer could connect, so it is not the address
					err = fmt.Errorf("%w: %w", errTurnedAway, err)
				}
				problems[i] = fmt.Errorf("%w: connect to %s: %w", sentinel(err), at[i].addr(), err)
			}
		})
	}
	wg.Wait()
	if err := s.bearable(at, problems); err != nil {
		for _, n := range nodes {
			err = errors.Join(err, n.Client.Close())
		}
		return nil, err
	}
	return nodes, nil
}

// clusterOptions are the options of a client for the whole cluster. The client follows no redirections, because a
// ClusterClient that follows them also repeats a command after a broken connection. A MOVED reply still updates the
// client's slots for the next command.
func (s *Server) clusterOptions(t *netfault.Traffic, name string, pool int) *redis.UniversalOptions {
	options := s.nodes[0].clientOptions(t, name, pool, s.dials)
	options.IsClusterMode = true
	options.MaxRedirects = -1
	options.Addrs = nil
	for _, n := range s.primaries() {
		options.Addrs = append(options.Addrs, n.addr())
	}
	return options
}

// clientOptions are the options of every client of a run. The client retries no command, because a repeated SET NX
// would change the measurement.
func (n *node) clientOptions(t *netfault.Traffic, name string, pool int, slots chan struct{}) *redis.UniversalOptions {
	options := n.options
	options.ClientName = name
	options.Dialer = dialer(t, options.TLSConfig, slots)
	options.DialTimeout = dialTimeout
	options.DialerRetries = 1
	options.MaxRetries = -1
	options.ReadTimeout = readTimeout
	options.ContextTimeoutEnabled = true
	options.PoolSize = pool
	options.PoolTimeout = poolTimeout
	options.PipelinePoolSize = -1 // pipelines use the pool, so that a run opens no connections
	options.ConnMaxIdleTime = -1
	options.ReadBufferSize, options.WriteBufferSize = bufferSize, bufferSize
	// These options avoid commands at the start of a connection.
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &options
}

// fill opens all connections of a client's pools.
func fill(ctx context.Context, client redis.UniversalClient, pool int) error {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		// With its first command the client reads the slots and the table of commands.
		if err := cluster.Exists(ctx, "lockbench").Err(); err != nil {
			return err
		}
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return fillPool(ctx, node, pool)
		})
	}
	if single, ok := client.(*redis.Client); ok {
		return fillPool(ctx, single, pool)
	}
	return client.Ping(ctx).Err()
}

// fillPool opens all connections of a pool by holding them at the same time.
func fillPool(ctx context.Context, client *redis.Client, pool int) error {
	conns := make([]*redis.Conn, pool)
	problems := make([]error, pool)
	var wg sync.WaitGroup
	atOnce := make(chan struct{}, dialsAtOnce)
	for i := range conns {
		conns[i] = client.Conn()
		atOnce <- struct{}{}
		wg.Go(func() {
			defer func() { <-atOnce }()
			problems[i] = conns[i].Ping(ctx).Err()
		})
	}
	wg.Wait()
	for _, conn := range conns {
		_ = conn.Close() // returns it to the pool
	}
	return cmp.Or(problems...) // the first error is enough
}

// dialer opens connections and counts their traffic. slots limits the number of concurrent dials, because thousands
// would overflow the server's backlog.
func dialer(t *netfault.Traffic, config *tls.Config, slots chan struct{}) store.Dialer {
	plain := net.Dialer{KeepAlive: 5 * time.Minute}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for earlier dials to finish: %w", ctx.Err())
		}
		conn, err := plain.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if config != nil {
			config := config
			if config.ServerName == "" { // the address came from a Sentinel
				config = config.Clone()
				config.ServerName, _, _ = net.SplitHostPort(addr)
			}
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
