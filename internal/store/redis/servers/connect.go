package servers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/goredis"
)

const (
	dialTimeout = 5 * time.Second
	// readTimeout outlasts a server that stalls for 3 s, as faults make it do.
	readTimeout = 10 * time.Second
	poolTimeout = 30 * time.Second
	// dialsAtOnce stays below the backlog of 511 that is Redis's default.
	dialsAtOnce = 128
	// bufferSize keeps 10,000 blocked connections at 80 MB; lock commands are short.
	bufferSize = 4 << 10
)

// Clients opens one application instance's own clients under that CLIENT name and
// with command pools of that size, already filled: one client a node for
// independent nodes, where a minority may be down; one on the primary, which
// follows a promotion; one on a whole cluster, with a pool to each of its nodes.
// Every connection, those that a strategy dials by itself too, takes the detour if
// there is one. The caller closes the clients.
func (s *Server) Clients(ctx context.Context, name string, pool int, detour store.Through) ([]goredis.Node, error) {
	t := s.newTraffic()
	if detour == nil {
		detour = func(dial store.Dialer) store.Dialer { return dial }
	}
	at, optionsOf := s.primaries(), func(n *node) *redis.UniversalOptions { return n.clientOptions(t, name, pool, s.dials) }
	kind := s.topology.row()
	if kind.whole {
		at, optionsOf = at[:1], func(*node) *redis.UniversalOptions { return s.clusterOptions(t, name, pool) }
	}
	var nodes []goredis.Node
	for _, n := range at {
		options := optionsOf(n)
		options.Dialer = detour(options.Dialer)
		if kind.dial != nil {
			options.Dialer = kind.dial(s)(options.Dialer)
		}
		nodes = append(nodes, goredis.Node{Client: redis.NewUniversalClient(options), Options: options})
	}
	problems := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if err := fill(ctx, n.Client, pool); err != nil {
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

// clusterOptions are those of a client of the whole cluster. It follows no
// redirection: a ClusterClient that may redirect also sends a command again after
// a connection broke. It learns from MOVED where the next command has to go.
func (s *Server) clusterOptions(t *intercept.Traffic, name string, pool int) *redis.UniversalOptions {
	options := s.nodes[0].clientOptions(t, name, pool, s.dials)
	options.IsClusterMode = true
	options.MaxRedirects = -1
	options.Addrs = nil
	for _, n := range s.primaries() {
		options.Addrs = append(options.Addrs, n.addr())
	}
	return options
}

// clientOptions are those of every client of a run. Nothing is retried: a SET NX
// sent twice would measure something else.
func (n *node) clientOptions(t *intercept.Traffic, name string, pool int, slots chan struct{}) *redis.UniversalOptions {
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
	options.PipelinePoolSize = -1 // pipelines share the pool: no connection opens in mid-run
	options.ConnMaxIdleTime = -1
	options.ReadBufferSize, options.WriteBufferSize = bufferSize, bufferSize
	// A connection starts with as few commands as it can.
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &options
}

// fill opens all connections of a client's pools.
func fill(ctx context.Context, client redis.UniversalClient, pool int) error {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		// The first command has the client learn the slots and the commands.
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
		_ = conn.Close() // gives it back to the pool
	}
	for _, problem := range problems { // one says it; a thousand would not say more
		if problem != nil {
			return problem
		}
	}
	return nil
}

func (s *Server) newTraffic() *intercept.Traffic {
	t := new(intercept.Traffic)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traffic = append(s.traffic, t)
	return t
}
