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
	// ErrUnreachable reports that no server could be reached or started, or that it stopped answering. A store's own
	// errors wrap it.
	ErrUnreachable = errors.New("unreachable")
	// ErrConfig reports that the request cannot work on this machine or with these servers.
	ErrConfig = errors.New("bad configuration")
)

// Options say where the servers of a run come from. Each store defines its own addresses and
// topologies.
type Options struct {
	Address  string // "" or auto: lockbench starts a server
	Topology string // to start, or to expect at the addresses
	CAFile   string // PEM; trusted for encrypted addresses
	// CertFile and KeyFile are a client's certificate and its key, PEM, for a Redis that asks for them.
	CertFile, KeyFile string
	Password          string // of a user's Redis, for addresses without one
	Image             string // of containers
	Durability        Durability
	// AllowFaults permits faults on servers that lockbench did not start.
	AllowFaults bool
	// Logf reports slow steps before there is a server, such as the pull of an image; nil means no
	// reports.
	Logf func(format string, args ...any)
	// Warn reports what a user should know although the run is as it should be; nil means no reports.
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

// Durability is the amount of confirmed writes that a server started by lockbench may lose in a crash. "" means Redis
// in memory, and other stores with their defaults.
type Durability string

// The durabilities.
const (
	InMemory Durability = "memory"  // all: writes are not stored on disk, or not before the answer
	Usual    Durability = "default" // the store's default
	Synced   Durability = "fsync"   // none: a write is on the disk before it is confirmed
)

// ParseDurability parses a durability; "" is valid.
func ParseDurability(s string) (Durability, error) {
	switch d := Durability(s); d {
	case "", InMemory, Usual, Synced:
		return d, nil
	}
	return "", fmt.Errorf("it must be memory, default or fsync, not %q", s)
}

// Store is a kind of store: how its servers are found or started.
type Store interface {
	// Schemes returns the URL schemes of its addresses.
	Schemes() []string
	// Validate returns all errors in the options that can be found without the servers, joined;
	// each names its flag.
	Validate(Options) error
	// Layout returns what the options request, as far as they specify it.
	Layout(Options) Layout
	// Open finds or starts the servers and waits until they are complete. runID marks what belongs
	// to this run. The error wraps ErrUnreachable or ErrConfig.
	Open(ctx context.Context, runID string, o Options) (Server, error)
}

// Layout describes how many servers there are, and how they work together.
type Layout interface {
	// Unfit returns the reason why a strategy cannot run there; "" if it can.
	Unfit(strategies.Info) string
	// Primaries is the number of servers that every instance connects to.
	Primaries() int
	// Impossible returns an error for every fault that is impossible or not permitted there.
	Impossible([]workloads.Fault) []error
}

// Server is the store of a session: one server or several. It is safe for concurrent use.
type Server interface {
	Target
	Layout
	// Describe says what the server is and why it was chosen, without any secret.
	Describe() results.Redis
	// RunIDs identify the servers' processes: each start has a new one.
	RunIDs() []string
	// Limits reads the limits of the server with the lowest ones. It never changes them.
	Limits(ctx context.Context) (Limits, error)
	// RoundTrips times commands, one after the other, on one connection. A store may give it that name. A time is nil
	// if the server refuses the command.
	RoundTrips(ctx context.Context, name string) (RoundTrips, error)
	// Faults returns an Injector for the faults of a workload. The caller closes it.
	Faults([]workloads.Fault) Injector
	// Settle waits until the servers are again as they were when they were opened.
	Settle(ctx context.Context) error
	// Close disconnects, and removes the servers that Open started. It works with a
	// context that has ended.
	Close(ctx context.Context) error
}

// Limits are the limits of the server with the lowest ones.
type Limits struct {
	MaxClients int64 // connections; 0 if not known
	Connected  int64 // connections now, including ours
}

// Injector is the Faults of one run.
type Injector interface {
	Faults
	Close()
}

// RoundTrips holds percentiles of the time of a command, in nanoseconds; nil if not known.
type RoundTrips struct {
	PingP50, PingP99     *int64 // of the smallest command
	ScriptP50, ScriptP99 *int64 // of the smallest script or write
}

// timings is the number of samples: enough for a median, and a negligible part of a run.
const timings = 300

// TimeCommand sends a command repeatedly, one after the other, and returns percentiles of its
// times in nanoseconds; nil if the server refuses it, see Protocol.Refused.
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
