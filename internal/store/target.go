// Package store is where locks are kept, as the engine sees it: what connects to it, looks
// at it, cleans it up and disturbs it. A folder below is one store.
package store

import (
	"context"
	"net"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Target is the store that a run is driven against: one server or several.
type Target interface {
	// Connect opens one application instance's own connections under that name, with
	// pools of that size, already filled. detour is put behind whatever dials; nil is
	// none. The caller closes the Instance.
	Connect(ctx context.Context, name string, pool int, detour Through) (Instance, error)
	// Ping says whether all servers answer.
	Ping(ctx context.Context) error
	// Local says whether the servers are on this machine, so that their CPU time is
	// part of the machine's.
	Local() bool
	Observer
	Cleaner
	Protocol
}

// Observer reads what servers count.
type Observer interface {
	// Read takes one reading of the servers' counters.
	Read(ctx context.Context) (results.Reading, error)
	// Subscriptions counts the channel subscriptions of all connections; nil where the
	// servers will not say, or the store has none.
	Subscriptions(ctx context.Context) *int64
	// Connected lists the names of connections that begin so, each once.
	Connected(ctx context.Context, prefix string) ([]string, error)
}

// Cleaner finds and removes what a run leaves behind.
type Cleaner interface {
	// Leftovers names the keys and channels that contain mark, and the connections
	// of that name.
	Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error)
	// Remove deletes keys.
	Remove(ctx context.Context, keys []string) error
}

// Protocol understands what a store's servers are told and say.
type Protocol interface {
	// Commands are the names of the commands in a piece of what is written to a server,
	// without those that open a connection. A piece that begins within a command has
	// none.
	Commands(written []byte) []string
	// Refused is the code by which a server says that it will not have anybody, or this
	// user, do that now; "" for any other error.
	Refused(err error) string
	// Unauthorised says whether that code is of a right that is missing.
	Unauthorised(code string) bool
}

// Instance is one application instance's own connections. It is safe for concurrent use.
type Instance interface {
	// Nodes are what a strategy is opened with, one for each server that it needs.
	Nodes() []any
	// Counter is a number under a name, as the holder of a lease reaches it; what more it
	// keeps has a name that begins with NAME and a colon. token is
	// that of the lease; fence says what is done with it, FenceOff without one.
	Counter(name string, fence workloads.Fence, token int64) Counter
	// Pools is how much was waited for connections so far.
	Pools() Pools
	// Lacking are those of a strategy's rights that the user does not have, by asking
	// the server. Keys begin with prefix, and key is one of them. refusal is what the
	// server has said.
	Lacking(ctx context.Context, rights strategies.Rights, prefix, key, refusal string) []string
	Close() error
}

// Pools is how much was waited for connections of command pools.
type Pools struct {
	Waits    int64
	WaitedNS int64
	Timeouts int64
}

// Dialer opens a connection to a store.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Through makes a Dialer of another whose connections take a detour: one that counts
// what they carry, or breaks or delays them on purpose.
type Through = func(Dialer) Dialer
