package servers

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
)

// RoundTrips times PING and a script that reads a key, one after the other on one
// connection of that name.
func (s *Server) RoundTrips(ctx context.Context, name string) (store.RoundTrips, error) {
	var times store.RoundTrips
	nodes, err := s.Clients(ctx, name, 1, nil)
	if err != nil {
		return times, fmt.Errorf("connect for the baselines: %w", err)
	}
	defer func() { _ = instance(nodes).Close() }()
	client := nodes[0].Client
	if times.PingP50, times.PingP99, err = store.TimeCommand(Refused, func() error { return client.Ping(ctx).Err() }); err != nil {
		return times, err
	}
	script := redis.NewScript(`return redis.call('GET', KEYS[1])`)
	if err := script.Load(ctx, client).Err(); err != nil {
		if Refused(err) != "" { // without the right to it the figure is unknown
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
