package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

var (
	// ErrUnreachable reports that no server could be reached or started, or that a server stopped replying. The errors of
	// each store wrap ErrUnreachable.
	ErrUnreachable = errors.New("unreachable")
	// ErrConfig reports that the options cannot work on this machine or with these servers.
	ErrConfig = errors.New("bad configuration")
)

// Options say which servers a run uses, and how lockbench starts or reaches them. Each store defines the form of its
// addresses and topologies.
type Options struct {
	Address  string // "" or auto: lockbench starts a server
	Topology string // the one to start, or the one expected at the addresses
	CAFile   string // PEM; trusted for encrypted addresses
	// CertFile and KeyFile are a client certificate and its key, both PEM, for a Redis that requires client certificates.
	CertFile, KeyFile string
	Password          string // of a user's Redis; applies to addresses without a password
	Image             string // for containers
	Durability        Durability
	// AllowFaults permits faults on servers that lockbench did not start.
	AllowFaults bool
	// Logf reports slow steps of the start, such as the pull of an image; nil means no reports.
	Logf func(format string, args ...any)
	// Warn reports conditions that a user should know about and that do not stop the run; nil means no reports.
	Warn func(warning string)
}

// Started reports whether lockbench starts the servers itself.
func (o Options) Started() bool {
	switch o.Address {
	case "", "auto", "container", "process":
		return true
	}
	return strings.HasPrefix(o.Address, "image:") || strings.HasPrefix(o.Address, "process:")
}

// Durability selects which confirmed writes a server started by lockbench may lose in a crash. "" means in memory for
// Redis, and the store's default for other stores.
type Durability string

// These are the values of --durability.
const (
	InMemory Durability = "memory"  // all of them: no write is synced to disk before its reply
	Usual    Durability = "default" // the store's default
	Synced   Durability = "fsync"   // none: each write is synced to disk before its reply
)

// ParseDurability returns the durability with the name s, which may be "". For any other text the error lists the
// names.
func ParseDurability(s string) (Durability, error) {
	switch d := Durability(s); d {
	case "", InMemory, Usual, Synced:
		return d, nil
	}
	return "", fmt.Errorf("the durability must be memory, default or fsync, not %q", s)
}

// Store is one kind of store, such as Redis or etcd. It finds or starts servers of that kind.
type Store interface {
	// Schemes returns the URL schemes of the store's addresses, such as etcd and etcds.
	Schemes() []string
	// Validate returns all errors in the options that can be detected without the servers, joined. Each error names its
	// flag.
	Validate(Options) error
	// Layout describes the number and the arrangement of the servers that the options ask for, as far as the options
	// specify them.
	Layout(Options) Layout
	// Open finds or starts the servers and waits until all of them are ready. runID marks everything that belongs to this
	// run. The error wraps ErrUnreachable or ErrConfig.
	Open(ctx context.Context, runID string, o Options) (Server, error)
}

// Layout describes the number of servers and how they cooperate.
type Layout interface {
	// Unfit returns the reason why a strategy cannot run on these servers; "" if it can.
	Unfit(strategies.Info) string
	// Primaries is the number of servers that every instance connects to.
	Primaries() int
	// Impossible returns an error for every fault that is impossible on these servers or not permitted.
	Impossible([]workloads.Fault) []error
}

// Server is the store of a session: one server or several. It is safe for concurrent use.
type Server interface {
	Target
	Layout
	// Describe returns what the servers are and why they were chosen. The description contains no secrets.
	Describe() results.Redis
	// RunIDs returns one ID per server process. A restart changes the ID.
	RunIDs() []string
	// Limits returns the lowest connection limit and the largest number of open connections of all servers. It never
	// changes a setting.
	Limits(ctx context.Context) (Limits, error)
	// RoundTrips measures commands, each sent after the reply to the previous one, on one connection. A store may open
	// that connection under the given name. A time is nil if the server refuses the command.
	RoundTrips(ctx context.Context, name string) (RoundTrips, error)
	// Faults returns an Injector for the faults of a workload. The caller closes it.
	Faults([]workloads.Fault) Injector
	// Settle waits until the servers are in the same state as after Open. It is called, for example, after a fault.
	Settle(ctx context.Context) error
	// Close disconnects, and removes the servers that Open started. It works even if ctx is already done.
	Close(ctx context.Context) error
}

// Limits holds the lowest connection limit and the largest number of open connections of all servers.
type Limits struct {
	MaxClients int64 // connections; 0 if not known
	Connected  int64 // connections now, including lockbench's
}

// Injector injects the Faults of one run. Its Close closes the proxies through which it injects faults.
type Injector interface {
	Faults
	Close()
}

// RoundTrips holds the median and the 99th percentile of the round trips of two commands, in nanoseconds; nil means not
// known.
type RoundTrips struct {
	PingP50, PingP99     *int64 // of the smallest command
	ScriptP50, ScriptP99 *int64 // of the smallest script or write
}

// timings is the number of commands that TimeCommand sends: enough for a median, and a negligible part of a run.
const timings = 300

// TimeCommand sends a command repeatedly, each time after the previous reply, and returns the median and the 99th
// percentile of its times in nanoseconds. Both are nil if the server refuses the command, that is, if refused returns a
// code.
func TimeCommand(refused func(error) string, send func() error) (p50, p99 *int64, err error) {
	times := make([]int64, 0, timings)
	for range timings {
		start := time.Now()
		if err := send(); err != nil {
			if refused(err) != "" {
				return nil, nil, nil
			}
			return nil, nil, fmt.Errorf("measure the round trip: %w", err)
		}
		times = append(times, int64(time.Since(start)))
	}
	slices.Sort(times)
	return &times[len(times)/2], &times[len(times)*99/100], nil
}
