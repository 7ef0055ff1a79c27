package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goetcd"
	"github.com/lockbench/lockbench/workloads"
)

// Connect opens an instance's client: one connection to each member, which all callers share. The
// size of the pool has no effect.
func (s *Server) Connect(ctx context.Context, name string, _ int, detour store.Through) (store.Instance, error) {
	config := through(clientConfig(s.to), s.meter.Instance(), detour)
	client, err := clientv3.New(config)
	if err != nil {
		return nil, s.because(ctx, err)
	}
	i := &instance{client: client, config: config}
	first, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err = ask(first, client); err == nil && s.present != nil {
		i.present, err = announce(first, s.client, name)
	}
	if err != nil {
		return nil, errors.Join(s.because(ctx, err), i.Close())
	}
	return i, nil
}

// instance is one application instance's client.
type instance struct {
	client  *clientv3.Client
	config  clientv3.Config
	present *presence
}

// Nodes returns the one Node for strategies.Config.
func (i *instance) Nodes() []any { return []any{goetcd.Node{Client: i.client, Config: i.config}} }

// Counter returns the counter of this name.
func (i *instance) Counter(name string, fence workloads.Fence, token int64) store.Counter {
	return store.Fenced(fence, unguarded{i.client, name}, guarded{i.client, name, token})
}

// Pools returns zeros: no command waits for a connection.
func (i *instance) Pools() store.Pools { return store.Pools{} }

// Lacking returns nil: etcd does not say which rights are missing.
func (i *instance) Lacking(context.Context, strategies.Rights, string, string, string) []string {
	return nil
}

// Close closes the connections.
func (i *instance) Close() error {
	if i.present != nil {
		i.present.end()
	}
	if err := closed(i.client); err != nil {
		return fmt.Errorf("close etcd's client: %w", err)
	}
	return nil
}
