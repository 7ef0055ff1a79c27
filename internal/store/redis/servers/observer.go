package servers

import (
	"context"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
)

// observed counts the requests of the observers' connections, to separate them from the clients'.
type observed struct{ *store.Meter }

// count counts commands by the names that they have in INFO commandstats.
func (o observed) count(commands ...redis.Cmder) {
	for _, c := range commands {
		o.Count(strings.ReplaceAll(strings.ToLower(c.FullName()), " ", "|"))
	}
}

// These are the methods of redis.Hook.

func (o observed) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (o observed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		o.count(c)
		return next(ctx, c)
	}
}

func (o observed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		o.count(commands...)
		return next(ctx, commands)
	}
}
