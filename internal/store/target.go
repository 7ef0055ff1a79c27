// Package store defines the engine's view of the stores in which locks are kept: how it
// connects to them, observes, cleans and disturbs them. Each subfolder is one store.
package store

import (
	"context"
	"errors"
	"net"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Target is the store that a run measures: one server or several.
type Target interface {
	// Connect opens one application instance's own connections under that name, with filled pools
	// of that size. detour wraps every Dialer; nil means none. The caller closes the Instance.
	Connect(ctx context.Context, name string, pool int, detour Through) (Instance, error)
	// Ping reports whether all servers answer.
	Ping(ctx context.Context) error
	// Local reports whether the servers are on this machine, so that the machine's CPU time includes theirs.
	Local() bool
	Observer
	Cleaner
	Protocol
}

// Observer reads the servers' counters.
type Observer interface {
	// Read takes one reading of the servers' counters.
	Read(ctx context.Context) (results.Reading, error)
	// Subscriptions counts the channel subscriptions of all connections; nil if not known, or if
	// the store has none.
	Subscriptions(ctx context.Context) *int64
}

// Cleaner finds and removes what a run left behind.
type Cleaner interface {
	// Leftovers names the keys and channels that contain mark, and the connections
	// of that name.
	Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error)
	// Remove deletes keys.
	Remove(ctx context.Context, keys []string) error
}

// Protocol interprets the traffic of a store's servers.
type Protocol interface {
	// Commands returns the names of the commands in data written to a server, without those that
	// open a connection. It returns none if the data begins inside a command.
	Commands(written []byte) []string
	// Refused returns the code with which a server refuses a command at present, to everyone or
	// to this user; "" for any other error.
	Refused(err error) string
	// Unauthorised reports whether that code means a missing right.
	Unauthorised(code string) bool
}

// Instance is one application instance's own connections. It is safe for concurrent use.
type Instance interface {
	// Nodes returns the clients for strategies.Config, one for each server.
	Nodes() []any
	// Pools returns how much commands have waited for connections so far.
	Pools() Pools
	Close() error
}

// Without has empty methods for optional features. A store embeds it that has no subscriptions, does not read its
// protocol, reports no limits and has no pools.
type Without struct{}

// Subscriptions returns nil.
func (Without) Subscriptions(context.Context) *int64 { return nil }

// Commands returns nil.
func (Without) Commands([]byte) []string { return nil }

// Limits returns zeros.
func (Without) Limits(context.Context) (Limits, error) { return Limits{}, nil }

// Pools returns zeros.
func (Without) Pools() Pools { return Pools{} }

// Pools describes how much commands have waited for connections of their pools.
type Pools struct {
	Waits    int64
	WaitedNS int64
	Timeouts int64
}

// Dialer opens a connection to a store.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Through wraps a Dialer. Its connections may count what they carry, or break or delay it on
// purpose.
type Through = func(Dialer) Dialer

// Hub is the Target that has what the clients of a run share in addition to the locks: Redis. Its Instances are
// Counting.
type Hub interface {
	Target
	// Connected lists the names of connections with this prefix, each once: they show which processes take part.
	Connected(ctx context.Context, prefix string) ([]string, error)
}

// Counting is an Instance with counters.
type Counting interface {
	Instance
	// Counter returns the counter of that name for the holder of a lease. Further keys of it begin with NAME and a
	// colon. token is the lease's; fence selects how it is checked, with FenceOff not at all.
	Counter(name string, fence workloads.Fence, token int64) Counter
}

// Counter is a number that a lock's holders read and write back one higher.
type Counter interface {
	// Read returns ErrStale if the counter refuses the token.
	Read(ctx context.Context) (int64, error)
	// Write returns ErrStale if the counter refuses the token.
	Write(ctx context.Context, n int64) error
}

// ErrStale reports a token that is older than one the counter has seen.
var ErrStale = errors.New("the fencing token is stale")
