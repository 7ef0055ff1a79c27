package trial

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// CountDials returns a node, and counts how often its client, and whatever else uses its
// options, dials.
func CountDials(t testing.TB, server *redistest.Server) (goredis.Node, *atomic.Int64) {
	t.Helper()
	dials := new(atomic.Int64)
	node := server.Node(t)
	options := *node.Options
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return goredis.Node{Client: client, Options: &options}, dials
}
