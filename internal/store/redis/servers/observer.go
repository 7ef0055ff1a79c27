package servers

import (
	"context"
	"maps"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/results"
)

// observed counts the requests of the observers' connections, to separate them from the clients'.
type observed struct {
	traffic intercept.Traffic

	mu       sync.Mutex
	commands map[string]int64
}

func (o *observed) count(commands ...redis.Cmder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.commands == nil {
		o.commands = map[string]int64{}
	}
	for _, c := range commands {
		o.commands[strings.ReplaceAll(strings.ToLower(c.FullName()), " ", "|")]++ // the form of INFO commandstats
	}
}

func (o *observed) counts() results.ObserverCounts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return results.ObserverCounts{
		Commands:   maps.Clone(o.commands),
		RoundTrips: o.traffic.Requests(),
		BytesOut:   o.traffic.Written(),
		BytesIn:    o.traffic.Read(),
	}
}

// These are the methods of redis.Hook.

func (o *observed) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (o *observed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		o.count(c)
		return next(ctx, c)
	}
}

func (o *observed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		o.count(commands...)
		return next(ctx, commands)
	}
}
