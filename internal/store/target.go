// Package store defines how the engine connects to a store of locks, observes it, injects faults into it, and removes
// the leftovers of runs from it. Each store has its own subfolder.
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
	// Connect opens the connections of one application instance under the given name, with filled pools of the given size.
	// detour wraps every Dialer; nil means none. The caller closes the Instance.
	Connect(ctx context.Context, name string, pool int, detour Through) (Instance, error)
	// Ping returns an error unless all servers reply.
	Ping(ctx context.Context) error
	// Local reports whether the servers run on this machine. If they do, the CPU time of the machine includes that of the
	// servers.
	Local() bool
	Observer
	Cleaner
	Protocol
}

// Observer reads the servers' counters.
type Observer interface {
	// Read returns one reading of the servers' counters, summed over all servers.
	Read(ctx context.Context) (results.Reading, error)
	// Subscriptions counts the channel subscriptions of all connections. It returns nil if the number is not known or the
	// store has no subscriptions.
	Subscriptions(ctx context.Context) *int64
}

// Cleaner finds and removes the leftovers of a run.
type Cleaner interface {
	// Leftovers lists the keys and channels whose names contain mark, and the connections with the given name.
	Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error)
	// Remove deletes keys that Leftovers returned.
	Remove(ctx context.Context, keys []string) error
}

// Protocol interprets the traffic of a store's servers.
type Protocol interface {
	// Commands returns the names of the commands in data written to a server, except those that open a connection. It
	// returns none if the data begins in the middle of a command.
	Commands(written []byte) []string
	// Refused returns the code of an error with which a server refuses commands of this user or, temporarily, of all
	// users. It returns "" for any other error.
	Refused(err error) string
	// Unauthorised reports whether a code from Refused means that the user lacks a right.
	Unauthorised(code string) bool
}

// Instance holds the connections of one application instance. It is safe for concurrent use.
type Instance interface {
	// Nodes returns the clients for strategies.Config, one per server.
	Nodes() []any
	// Pools returns how often and how long commands have waited for a pooled connection so far.
	Pools() Pools
	Close() error
}

// Without implements the optional methods of a Target and an Instance without effect. A store embeds Without if it has
// no subscriptions, does not parse its protocol, reports no limits and has no pools.
type Without struct{}

// Subscriptions returns nil, because the store has no subscriptions.
func (Without) Subscriptions(context.Context) *int64 { return nil }

// Commands returns nil, because the store does not parse its protocol.
func (Without) Commands([]byte) []string { return nil }

// Limits returns zeros, which mean that no limit is known.
func (Without) Limits(context.Context) (Limits, error) { return Limits{}, nil }

// Pools returns zeros, because the store has no pools.
func (Without) Pools() Pools { return Pools{} }

// Pools counts the commands that had to wait for a connection of a full pool.
type Pools struct {
	Waits    int64
	WaitedNS int64
	Timeouts int64
}

// Dialer opens a connection to a store.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Through wraps a Dialer, to count the traffic of its connections or to let faults disturb this traffic.
type Through = func(Dialer) Dialer

// Hub is a Target that holds, in addition to the locks, data that the clients of a run share. Only Redis implements
// Hub. The Instances of a Hub implement Counting.
type Hub interface {
	Target
	// Connected lists the connection names that begin with prefix, each once. The names show which processes take part in
	// a run.
	Connected(ctx context.Context, prefix string) ([]string, error)
}

// Counting is an Instance with access to the counters that the locks of a run protect.
type Counting interface {
	Instance
	// Counter returns the counter with the given name, as the holder of a lease uses it. The names of the counter's other
	// keys begin with name and a colon. token is the fencing token of the lease. fence selects how the counter checks the
	// token. FenceOff means no check.
	Counter(name string, fence workloads.Fence, token int64) Counter
}

// Counter is a number in the store. Each holder of the lock reads it and writes back the next higher number.
type Counter interface {
	// Read returns the number, or ErrStale if the counter refuses the token.
	Read(ctx context.Context) (int64, error)
	// Write sets the number to n. It returns ErrStale if the counter refuses the token.
	Write(ctx context.Context, n int64) error
}

// ErrStale reports a fencing token that is older than one that the counter has already seen.
var ErrStale = errors.New("the fencing token is stale")
