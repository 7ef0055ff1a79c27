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

// instance holds the clients of one application instance. It implements store.Instance.
type instance []goredis.Node

// Nodes returns the clients as goredis.Node.
func (i instance) Nodes() []any {
	all := make([]any, len(i))
	for at, node := range i {
		all[at] = node
	}
	return all
}

// Counter implements store.Counting. It returns a counter on the first node. The key NAME:floor holds the highest token
// that the counter has seen.
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

// Close closes the connections of all clients.
func (i instance) Close() error {
	var problems []error
	for _, node := range i {
		problems = append(problems, node.Client.Close())
	}
	return errors.Join(problems...)
}

// Connect opens the clients of one application instance, as Clients does.
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

// counter is a key with a number. If fence requires a check of the token, the counter refuses an access whose token is
// below its floor. An access with a higher token raises the floor to this token (M. Kleppmann, How to do distributed
// locking, 2016).
type counter struct {
	server redis.UniversalClient
	name   string
	fence  workloads.Fence
	token  int64
}

// Read checks the token only with FenceAll. A check of writes alone misses one case: a holder reads and pauses, later
// holders read, and the first holder writes before the later holders do.
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

// guarded checks the token and raises the floor. If number is given, guarded also writes it.
func (c counter) guarded(ctx context.Context, number ...any) (int64, error) {
	args := append([]any{fmt.Sprintf("%020d", c.token)}, number...)
	n, err := guardedScript.Run(ctx, c.server, []string{c.name, c.name + ":floor"}, args...).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, store.ErrStale
	}
	return n, err
}

// RoundTrips measures PING and a script that reads a key, on one connection with the given CLIENT name. It sends each
// command after the reply to the previous one.
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
