package engine

import (
	"context"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Target is the Redis a run is driven against: one node or several.
type Target interface {
	// Connect opens one application instance's own clients, one a node, under
	// that CLIENT name and with command pools of that size, already filled. detour
	// is put behind whatever dials; nil is none. The caller closes the clients.
	Connect(ctx context.Context, name string, pool int, detour strategies.Through) ([]strategies.Node, error)
	// Ping says whether all nodes answer.
	Ping(ctx context.Context) error
	// Read takes one reading of the nodes' counters.
	Read(ctx context.Context) (results.Reading, error)
	// Subscriptions counts the channel subscriptions of all connections; nil
	// where the server will not say.
	Subscriptions(ctx context.Context) *int64
	// Leftovers names the keys and channels that contain mark, and the connections
	// whose CLIENT name is name.
	Leftovers(ctx context.Context, mark, name string) (Leftovers, error)
	// Connected lists the CLIENT names on the servers that begin so, each once.
	Connected(ctx context.Context, prefix string) ([]string, error)
	// Local says whether the nodes are on this machine, so that their CPU time is part
	// of the machine's.
	Local() bool
	// Remove deletes keys.
	Remove(ctx context.Context, keys []string) error
}

// Leftovers are what is on the servers of a run. The type lives among the
// results so that what implements Target need not import workloads.
type Leftovers = results.Leftovers
