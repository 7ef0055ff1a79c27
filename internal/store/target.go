// Package store defines how the engine connects to the stores in which locks are kept,
// observes and cleans them, and injects faults. Each subfolder is one store.
package store

import (
	"context"
	"errors"
	"net"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Target is the store that a run measures, consisting of one server or several.
type Target interface {
	// Connect opens the connections of one application instance under this name, with filled pools of this size. detour
	// wraps every Dialer; nil means none. The caller closes the Instance.
	Connect(ctx context.Context, name string, pool int, detour Through) (Instance, error)
	// Ping reports whether all servers answer.
	Ping(ctx context.Context) error
	// Local reports whether the servers run on this machine, in which case its CPU time includes theirs.
	Local() bool
	Observer
	Cleaner
	Protocol
}

// Observer reads the servers' counters.
type Observer interface {
	// Read takes one reading of the servers' counters.
	Read(ctx context.Context) (results.Reading, error)
	// Subscriptions counts the channel subscriptions of all connections. It returns nil if the number is not known or the
	// store has no subscriptions.
	Subscriptions(ctx context.Context) *int64
}

// Cleaner finds and removes the leftovers of a run.
type Cleaner interface {
	// Leftovers lists the keys and channels whose names contain mark, and the connections with this name.
	Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error)
	// Remove deletes keys.
	Remove(ctx context.Context, keys []string) error
}

// Protocol interprets the traffic of a store's servers.
type Protocol interface {
	// Commands returns the names of the commands in data written to a server, except those that open a connection. It
	// returns none if the data begins in the middle of a command.
	Commands(written []byte) []string
	// Refused returns the error code with which a server refuses a command, to all users for now or to this user; "" for
	// any other error.
	Refused(err error) string
	// Unauthorised reports whether a code from Refused means that the user lacks a right.
	Unauthorised(code string) bool
}

// Instance is the connections of one application instance. It is safe for concurrent use.
type Instance interface {
	// Nodes returns the clients for strategies.Config, one per server.
	Nodes() []any
	// Pools returns how often and how long commands have waited for a pooled connection so far.
	Pools() Pools
	Close() error
}

// Without implements the optional methods of a Target and an Instance without effect. A store embeds it if it has no
// subscriptions, does not parse its protocol, reports no limits and has no pools.
type Without struct{}

// Subscriptions returns nil.
func (Without) Subscriptions(context.Context) *int64 { return nil }

// Commands returns nil.
func (Without) Commands([]byte) []string { return nil }

// Limits returns zeros.
func (Without) Limits(context.Context) (Limits, error) { return Limits{}, nil }

// Pools returns zeros.
func (Without) Pools() Pools { return Pools{} }

// Pools counts the commands that had to wait for a connection of a full pool.
type Pools struct {
	Waits    int64
	WaitedNS int64
	Timeouts int64
}

// Dialer opens a connection to a store.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Through wraps a Dialer so that its connections count what they carry, or inject faults.
type Through = func(Dialer) Dialer

// Hub is a Target that also holds the data that the clients of a run share in addition to the locks: Redis. Its
// Instances are Counting.
type Hub interface {
	Target
	// Connected lists the names of the connections that begin with this prefix, each once. They show which processes take
	// part in a run.
	Connected(ctx context.Context, prefix string) ([]string, error)
}

// Counting is an Instance with counters.
type Counting interface {
	Instance
	// Counter returns the counter of this name, as the holder of a lease uses it. Other keys of the counter begin with
	// NAME and a colon. token is the fencing token of the lease. fence selects how the counter checks the token; FenceOff
	// means that it does not.
	Counter(name string, fence workloads.Fence, token int64) Counter
}

// Counter is a number on the store. Each holder of the lock reads it and writes back the next higher number.
type Counter interface {
	// Read returns ErrStale if the counter refuses the token.
	Read(ctx context.Context) (int64, error)
	// Write returns ErrStale if the counter refuses the token.
	Write(ctx context.Context, n int64) error
}

// ErrStale reports a fencing token that is older than one that the counter has already seen.
var ErrStale = errors.New("the fencing token is stale")
