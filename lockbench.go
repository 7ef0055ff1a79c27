// Package lockbench benchmarks Redis distributed locks: a Plan goes in, a
// Report comes out, and between them every strategy is driven through the same
// contention on a real Redis, measured and audited.
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
	// or it went away.
	ErrUnreachable = store.ErrUnreachable
	// ErrConfig is returned by Run when the plan cannot work here: a server or
	// process limit is too small, a file is missing. Plan.Validate finds the
	// faults that need no look at the machine.
	ErrConfig = store.ErrConfig
)

// Plan says what to measure.
type Plan struct {
	Strategies []strategies.Variant
	Workload   workloads.Spec
	// Sweep are the workloads to measure one by one; without any it is Workload alone.
	Sweep  []workloads.Point
	Rounds int // runs of each strategy at each point, interleaved; at least 1
	Redis  StoreOptions
	// Stores are the options of stores beside Redis, by the names that strategies give in
	// Info.Store; one that is not there is started. A program knows those that it imports:
	// lockbench/stores has all.
	Stores map[string]StoreOptions
	// Servers are further Redis servers, to be compared with Redis: every strategy runs on
	// each of them in every round, and its runs are labelled server=NAME.
	Servers   []StoreOptions
	Baselines bool           // measure the baselines first
	Progress  func(Progress) // called from one goroutine at a time; may be nil
	// Logf is told what takes time before the first run, such as an image that is pulled or
	// built; nil is silence. It is called from one goroutine at a time.
	Logf func(format string, args ...any)

	// Session is what generators that measure together have in common: by it they
	// share keys. "" is a session of this one alone.
	Session string
	// Start is when the first run's warm-up begins; the others follow at fixed times,
	// by warm-up, window and number of clients. Zero is as soon as each of them can.
	Start time.Time
}

// StoreOptions say where the servers of a store come from, Redis's to begin with.
type StoreOptions struct {
	// Address is "auto", "container", "process", image:NAME, process:PROGRAM or a URL of
	// the store's: redis:// or
	// rediss://, or several URLs with commas in between: independent nodes, a primary with
	// its replicas, or some nodes of a cluster, which is found out; etcd://, postgres://,
	// zk:// of the others.
	// auto is a container if the program imports lockbench/docker and Docker works, else a
	// local process. What go-redis logs goes to standard error; redis.SetLogger changes
	// that.
	Address string
	// Topology is single, nodes:N, replicas:N or cluster:N: what to start, or what
	// there must be at the addresses. "" is one node, or whatever is there. Other stores
	// have NAME:N, as etcd:3.
	Topology string
	CAFile   string // PEM, to trust for encrypted addresses
	Image    string // of the container; "" is redis:8, else the locally built one
	Pin      bool   // put server and generator on disjoint CPUs
	// Durability is memory, default or fsync: what a crash of what lockbench starts may lose;
	// "" is Redis in memory and the others as they are shipped.
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

// Feasible says why the plan cannot be carried out on the servers that it asks for, as
// far as that can be told without a look at them; the error wraps ErrConfig. What only
// they or a strategy at work can tell comes out in Run.
func (p Plan) Feasible() error { return p.runner().Feasible() }

// Titles are the names by which its strategies, of a sweep with their points, stand in
// the report.
func (p Plan) Titles() []string { return p.runner().Titles() }

// Warnings names what is allowed but rarely meant.
func (p Plan) Warnings() []string { return p.runner().Warnings() }

// Expected is about how long Run will take, Redis already running. A window that
// ends after a number of iterations counts as nothing.
func (p Plan) Expected() time.Duration { return p.runner().Expected() }

func (p Plan) runner() runner.Plan {
	plan := runner.Plan{
		Strategies: p.Strategies, Workload: p.Workload, Sweep: p.Sweep, Rounds: p.Rounds,
		Stores: map[string]store.Options{store.Redis: p.Redis.options()}, Baselines: p.Baselines, Session: p.Session, Start: p.Start,
	}
	for _, options := range p.Servers {
		plan.Servers = append(plan.Servers, options.options())
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
// The report comes also with an error and holds what was measured before it; it
// is nil when no Redis could be had, or its limits are too small. A plan without a
// seed gets one, which the report has. When ctx ends the run under way is cut
// short, the rest is left out and the report says Interrupted, without an error.
func Run(ctx context.Context, plan Plan) (*results.Report, error) {
	return runner.Run(ctx, plan.runner())
}

// Version is that of the module as built: a tag, or the commit for a build from
// a work tree.
func Version() string { return runner.Version() }
