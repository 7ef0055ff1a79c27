package servers

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/workloads"
)

// instance is the clients of one application instance. It is a store.Instance.
type instance []goredis.Node

// Nodes returns the clients as goredis.Node.
func (i instance) Nodes() []any {
	all := make([]any, len(i))
	for at, node := range i {
		all[at] = node
	}
	return all
}

// Counter returns a counter on the first node, see store.Counting. NAME:floor holds the highest token that the counter
// has seen.
func (i instance) Counter(name string, fence workloads.Fence, token int64) store.Counter {
	return counter{i[0].Client, name, fence, token}
}

// Pools sums the statistics of go-redis's pools.
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

// Connect opens the clients of one application instance, see Clients.
func (s *Server) Connect(ctx context.Context, name string, pool int, detour store.Through) (store.Instance, error) {
	nodes, err := s.Clients(ctx, name, pool, detour)
	if err != nil {
		return nil, err
	}
	return instance(nodes), nil
}

//go:embed counter.lua
var guardedSource string

var guardedScript = redis.NewScript(guardedSource)

// counter is a key with a number. Where fence checks tokens, each access raises the counter's floor to its token, and
// the counter refuses a token below the floor (M. Kleppmann, How to do distributed locking, 2016).
type counter struct {
	server redis.UniversalClient
	name   string
	fence  workloads.Fence
	token  int64
}

// Read checks the token only with FenceAll. If only writes are checked, one case goes undetected: a holder reads and
// pauses, later holders read, and the first holder writes before they do.
func (c counter) Read(ctx context.Context) (n int64, err error) {
	if c.fence == workloads.FenceAll {
		n, err = c.guarded(ctx)
	} else if n, err = c.server.Get(ctx, c.name).Int64(); errors.Is(err, redis.Nil) {
		err = nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}

func (c counter) Write(ctx context.Context, n int64) (err error) {
	if c.fence != workloads.FenceOff {
		_, err = c.guarded(ctx, n)
	} else {
		err = c.server.Set(ctx, c.name, n, 0).Err()
	}
	if err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

// guarded checks the token and raises the floor, and writes the number if one is given.
func (c counter) guarded(ctx context.Context, number ...any) (int64, error) {
	args := append([]any{fmt.Sprintf("%020d", c.token)}, number...)
	n, err := guardedScript.Run(ctx, c.server, []string{c.name, c.name + ":floor"}, args...).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, store.ErrStale
	}
	return n, err
}

// RoundTrips measures PING and a script that reads a key, one after the other on one connection with this name.
func (s *Server) RoundTrips(ctx context.Context, name string) (store.RoundTrips, error) {
	var times store.RoundTrips
	nodes, err := s.Clients(ctx, name, 1, nil)
	if err != nil {
		return times, fmt.Errorf("connect for the baselines: %w", err)
	}
	defer func() { _ = instance(nodes).Close() }()
	client := nodes[0].Client
	ping := func() error { return client.Ping(ctx).Err() }
	if times.PingP50, times.PingP99, err = store.TimeCommand(Refused, ping); err != nil {
		return times, err
	}
	script := redis.NewScript(`return redis.call('GET', KEYS[1])`)
	if err := script.Load(ctx, client).Err(); err != nil {
		if Refused(err) != "" { // without the right to load scripts the figure is unknown
			return times, nil
		}
		return times, fmt.Errorf("load the baseline's script: %w", err)
	}
	key := name + ":{floor}"
	times.ScriptP50, times.ScriptP99, err = store.TimeCommand(Refused, func() error {
		if err := script.EvalSha(ctx, client, []string{key}).Err(); !errors.Is(err, redis.Nil) {
			return err
		}
		return nil
	})
	return times, err
}
