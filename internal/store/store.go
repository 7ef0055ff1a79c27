package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

var (
	// ErrUnreachable says that no server could be reached or started, or that it went
	// away. A store's own errors wrap it.
	ErrUnreachable = errors.New("unreachable")
	// ErrConfig says that what was asked for cannot work on this machine or with these
	// servers.
	ErrConfig = errors.New("bad configuration")
)

// Options say where the servers of a run come from. What an address and a topology are
// like is the store's own.
type Options struct {
	Address    string // "" or auto is one that lockbench starts
	Topology   string // what to start, or what there must be at the addresses
	CAFile     string // PEM, to trust for encrypted addresses
	Image      string // of containers
	Pin        bool   // put servers and generator on disjoint CPUs
	Durability Durability
	// AllowFaults lets faults disturb servers that lockbench did not start.
	AllowFaults bool
	// Logf is told what takes time before there is a server, such as an image that is being
	// pulled; nil is silence.
	Logf func(format string, args ...any)
}

// Started says whether lockbench starts the servers itself.
func (o Options) Started() bool {
	switch o.Address {
	case "", "auto", "container", "process":
		return true
	}
	return strings.HasPrefix(o.Address, "image:") || strings.HasPrefix(o.Address, "process:")
}

// Durability is how much of what a server of ours has confirmed it may lose when it
// crashes. "" is as lockbench has always started it: Redis in memory, others as shipped.
type Durability string

// The durabilities.
const (
	InMemory Durability = "memory"  // everything: nothing is written to disk, or not waited for
	Usual    Durability = "default" // what the store's makers let it lose
	Synced   Durability = "fsync"   // nothing: a write is on the disk before it is confirmed
)

// ParseDurability reads one; "" is one too.
func ParseDurability(s string) (Durability, error) {
	switch d := Durability(s); d {
	case "", InMemory, Usual, Synced:
		return d, nil
	}
	return "", fmt.Errorf("%q is not memory, default or fsync", s)
}

// Store is a kind of store: how its servers are found or started.
type Store interface {
	// Schemes are those of its addresses.
	Schemes() []string
	// Validate returns every error of the options that can be told without a look at the
	// servers, joined, each naming its flag.
	Validate(Options) error
	// Layout is what the options ask for, as far as they say it.
	Layout(Options) Layout
	// Open finds or starts the servers, and waits until they are whole. runID marks what
	// belongs to this run. The error wraps ErrUnreachable or ErrConfig.
	Open(ctx context.Context, runID string, o Options) (Server, error)
}

// Layout is how many servers there are, and how they belong together.
type Layout interface {
	// Unfit is why a strategy cannot run there; "" if it can.
	Unfit(strategies.Info) string
	// Primaries is the number of servers that every instance connects to.
	Primaries() int
	// Impossible names every fault that cannot come about there, or must not.
	Impossible([]workloads.Fault) []error
}

// Server is the store of a session: one server or several. It is safe for concurrent use.
type Server interface {
	Target
	Layout
	// Describe says what it is and why, without any secret.
	Describe() results.Redis
	// RunIDs are what tells its servers from others, and from themselves after a
	// restart.
	RunIDs() []string
	// Limits asks for what the tightest server allows. It never changes them.
	Limits(ctx context.Context) (Limits, error)
	// RoundTrips times commands one after the other on a connection of that name.
	// What the servers do not allow stays nil.
	RoundTrips(ctx context.Context, name string) (RoundTrips, error)
	// Faults bring those of a workload about. The caller closes them.
	Faults([]workloads.Fault) Injector
	// Settle waits until the servers are as they were when they were opened.
	Settle(ctx context.Context) error
	// GeneratorCPUs are the CPUs the generator was pinned to; nil without pinning.
	GeneratorCPUs() []int
	// Close disconnects, and removes the servers that Open started. It works with a
	// context that has ended.
	Close(ctx context.Context) error
}

// Limits are what the tightest server allows.
type Limits struct {
	MaxClients int64 // connections; 0 where the server does not tell
	Connected  int64 // now, ours included
}

// Injector is Faults of one run, to be closed.
type Injector interface {
	Faults
	Close()
}

// NewRunID is a RunID that is unlikely to be anybody else's.
func NewRunID() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails, by its documentation
	return hex.EncodeToString(id)
}
