// Package lockbench benchmarks Redis distributed locks. Run carries out a Plan and
// returns a Report: it measures and audits every strategy under the same contention
// on a real Redis.
package lockbench

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/internal/runner"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

var (
	// ErrUnreachable is returned by Run when no Redis could be reached or started,
	// or when it went away.
	ErrUnreachable = store.ErrUnreachable
	// ErrConfig is returned by Run when the plan cannot work here: a server or
	// process limit is too small, or a file is missing. Plan.Validate finds the
	// errors that need no look at the machine.
	ErrConfig = store.ErrConfig
)

// Plan says what to measure.
type Plan struct {
	Strategies []strategies.Variant
	Workload   workloads.Spec
	// Sweep are the workloads to measure one by one; if empty, Run measures Workload.
	Sweep  []workloads.Point
	Rounds int // runs of each strategy at each point, interleaved; at least 1
	Redis  StoreOptions
	// Stores are the options of stores other than Redis, by the names in Info.Store; a
	// store without options is started. A program knows the stores that it imports:
	// lockbench/stores imports all.
	Stores    map[string]StoreOptions
	Baselines bool           // measure the baselines first
	Progress  func(Progress) // called from one goroutine at a time; may be nil
	// Logf reports what takes time before the first run, such as pulling or building an
	// image; nil means silence. It is called from one goroutine at a time.
	Logf func(format string, args ...any)

	// Session is the common name of generators that measure together: they share keys.
	// "" means a session of this one alone.
	Session string
	// Start is when the first run's warm-up begins; the others follow at fixed times,
	// by warm-up, window and number of clients. Zero means as soon as each of them can.
	Start time.Time
}

// StoreOptions say where the servers of a store, such as Redis, come from.
type StoreOptions struct {
	// Address is "auto", "container", "process", image:NAME, process:PROGRAM or a URL of
	// the store: redis://, rediss://, etcd://, postgres:// or zk://. Several URLs are
	// separated by commas: independent nodes, a primary with its replicas, or some nodes
	// of a cluster; lockbench finds out which.
	// auto means a container if the program imports lockbench/docker and Docker works,
	// otherwise a local process. go-redis logs to standard error; redis.SetLogger changes
	// that.
	Address string
	// Topology is single, nodes:N, replicas:N or cluster:N: what to start, or what
	// must be at the addresses. "" means one node, or whatever is there. Other stores
	// have NAME:N, such as etcd:3.
	Topology string
	CAFile   string // PEM certificates to trust for encrypted addresses
	Image    string // of the container; "" means redis:8, for other stores the locally built one
	Pin      bool   // put server and generator on disjoint CPUs
	// Durability is memory, default or fsync: what a crash of a started server may lose.
	// "" means memory for Redis, and the others as they are shipped.
	Durability string
	// AllowFaults lets the workload's faults disturb servers that lockbench did not
	// start.
	AllowFaults bool
}

func (r StoreOptions) options() store.Options {
	return store.Options{
		Address: r.Address, Topology: r.Topology, CAFile: r.CAFile, Image: r.Image, Pin: r.Pin,
		Durability: store.Durability(r.Durability), AllowFaults: r.AllowFaults,
	}
}

// Progress tells what a run is doing.
type Progress struct {
	Run, Runs int // from 1
	Strategy  string
	Round     int
	Phase     string        // start, baselines, prepare, warm-up, measure, drain, verify, or that the servers have stopped answering
	Remaining time.Duration // expected until the end of all runs
}

// Validate returns every error of the plan at once, joined.
func (p Plan) Validate() error { return p.runner().Validate() }

// Feasible returns an error, which wraps ErrConfig, if the plan cannot be carried out on
// the servers that it asks for. It does not look at them: Run finds the other errors.
func (p Plan) Feasible() error { return p.runner().Feasible() }

// Titles returns the strategies' names in the report; in a sweep they include the
// points.
func (p Plan) Titles() []string { return p.runner().Titles() }

// Warnings names settings that are allowed but rarely meant.
func (p Plan) Warnings() []string { return p.runner().Warnings() }

// Expected returns about how long Run will take once Redis is running. A window that
// ends after a number of iterations counts as zero.
func (p Plan) Expected() time.Duration { return p.runner().Expected() }

func (p Plan) runner() runner.Plan {
	plan := runner.Plan{
		Strategies: p.Strategies, Workload: p.Workload, Sweep: p.Sweep, Rounds: p.Rounds,
		Stores: map[string]store.Options{store.Redis: p.Redis.options()}, Baselines: p.Baselines, Session: p.Session, Start: p.Start,
	}
	for name, options := range p.Stores {
		plan.Stores[name] = options.options()
	}
	plan.Logf = p.Logf
	if p.Progress != nil {
		plan.Progress = func(progress runner.Progress) { p.Progress(Progress(progress)) }
	}
	return plan
}

// Run carries the plan out: open Redis, measure the baselines, run every strategy
// in every round, clean up.
//
// With an error Run still returns a report of what was measured before; it is nil if
// there is no Redis, or if its limits are too small. If the plan has no seed, Run draws
// one and reports it. When ctx ends, Run cuts the current run short and skips the rest;
// the report says Interrupted, and there is no error.
func Run(ctx context.Context, plan Plan) (*results.Report, error) {
	return runner.Run(ctx, plan.runner())
}

// Version returns the version of the module: a tag, or the commit for a build from a
// work tree.
func Version() string { return runner.Version() }
