package servers

import (
	"context"
	"errors"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/workloads"
)

// instance is one application instance's own clients, a store.Instance.
type instance []goredis.Node

// Nodes returns goredis.Nodes.
func (i instance) Nodes() []any {
	all := make([]any, len(i))
	for at, node := range i {
		all[at] = node
	}
	return all
}

// Counter returns a counter on the first node. Its floor is at NAME:floor.
func (i instance) Counter(name string, fence workloads.Fence, token int64) store.Counter {
	return store.Fenced(fence, unguarded{i[0].Client, name}, guarded{i[0].Client, name, token})
}

// Pools sums go-redis's pool statistics.
func (i instance) Pools() store.Pools {
	var sum store.Pools
	for _, node := range i {
		if p := node.Client.PoolStats(); p != nil {
			sum.Waits += int64(p.WaitCount)
			sum.WaitedNS += p.WaitDurationNs
			sum.Timeouts += int64(p.Timeouts)
		}
	}
	return sum
}

// Close closes the connections.
func (i instance) Close() error {
	var problems []error
	for _, node := range i {
		problems = append(problems, node.Client.Close())
	}
	return errors.Join(problems...)
}

// Connect opens one application instance's own clients, see Clients.
func (s *Server) Connect(ctx context.Context, name string, pool int, detour store.Through) (store.Instance, error) {
	nodes, err := s.Clients(ctx, name, pool, detour)
	if err != nil {
		return nil, err
	}
	return instance(nodes), nil
}
