// Package lockbench benchmarks distributed locks on Redis. Run executes a Plan and returns a Report: it measures and
// audits every strategy under the same contention on a real Redis.
package lockbench

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/internal/session"
	"github.com/lockbench/lockbench/internal/store"
	_ "github.com/lockbench/lockbench/internal/store/redis" // the store that every program includes
	"github.com/lockbench/lockbench/internal/store/redis/barrier"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

var (
	// ErrUnreachable is returned by Run when no Redis could be reached or started, or when Redis stopped answering.
	ErrUnreachable = store.ErrUnreachable
	// ErrGenerator is returned by Run when another generator of the session did not start or ended early.
	ErrGenerator = barrier.ErrLost
	// ErrConfig is returned by Run when the plan cannot run here: a limit of the server or the process is too small, or
	// a file is missing. Plan.Validate finds the errors that do not depend on the servers.
	ErrConfig = store.ErrConfig
)

// Plan describes what Run measures: the strategies, their workload, the number of rounds and the servers.
type Plan struct {
	Strategies []strategies.Variant
	Workload   workloads.Spec
	// Sweep lists the workloads to measure, one at a time; if it is empty, Run measures Workload.
	Sweep  []workloads.Point
	Rounds int // runs of each strategy at each point, interleaved; at least 1
	Redis  StoreOptions
	// Stores holds the options of stores other than Redis, keyed by the names in Info.Store. If a strategy needs a store
	// that has no options, Run starts the store. A program can use only the stores that it imports; package
	// lockbench/stores imports all of them.
	Stores    map[string]StoreOptions
	Baselines bool           // measure the baselines first
	Progress  func(Progress) // called from one goroutine at a time; may be nil
	// Watch receives the report so far, and the open waits of its last run, once a second and at the end of each run. The
	// last run of the report is the one under way. Watch must not change the report, and is called from one goroutine at a
	// time. A run with a driver includes each client's cycles only up to that client's last report. Watch may be nil.
	Watch func(*results.Report, []results.Wait)
	// Ended receives, at the end of each run, a report of the runs that have ended. Ended may keep and change that report,
	// which lacks only the data that Run adds before it returns. Ended is called from one goroutine at a time and may be
	// nil.
	Ended func(*results.Report)
	// Logf receives messages about slow steps before the first run, such as pulling or building an image. If Logf is nil,
	// the messages are discarded. Logf is called from one goroutine at a time.
	Logf func(format string, args ...any)

	// Generators is the group of processes that share the locks and begin every run together; the zero value means this
	// process alone.
	Generators Generators
}

// StoreOptions describes the servers of a store such as Redis: where they are or how to start them, and how to connect.
type StoreOptions struct {
	// Address is "auto", "container", "process", image:NAME, process:PROGRAM or a URL of the store: redis://, rediss://,
	// etcd://, postgres:// or zk://. Commas separate several URLs: independent nodes, a primary with its replicas, or some
	// nodes of a cluster; lockbench detects which. redis+sentinel://HOST,HOST/PRIMARY names the Sentinels of a primary.
	// auto means a container if the program imports lockbench/docker and Docker works, otherwise a local process. go-redis
	// logs to standard error unless redis.SetLogger sets another logger.
	Address string
	// Topology is single, nodes:N, replicas:N or cluster:N: the servers to start, or the servers that must be at the
	// addresses. "" means one node, or any servers at the addresses. Other stores have NAME:N, such as etcd:3.
	Topology string
	CAFile   string // PEM certificates to trust for encrypted addresses
	// CertFile and KeyFile are the client's certificate and key in PEM, for a Redis that requires them.
	CertFile, KeyFile string
	Password          string // for addresses that contain no password; never printed
	Image             string // of the container; "" means redis:8 or, for other stores, the locally built image
	// Durability determines which data a crash of a started server may lose. Its values are memory, default and fsync. ""
	// means memory for Redis and the store's own default for other stores.
	Durability string
	// AllowFaults lets the workload's faults disturb servers that lockbench did not
	// start.
	AllowFaults bool
}

func (r StoreOptions) options() store.Options {
	return store.Options{
		Address: r.Address, Topology: r.Topology, CAFile: r.CAFile, Image: r.Image,
		CertFile: r.CertFile, KeyFile: r.KeyFile, Password: r.Password,
		Durability: store.Durability(r.Durability), AllowFaults: r.AllowFaults,
	}
}

// Progress describes how far Run has progressed: the current run and its phase, and the expected time until the end of
// all runs.
type Progress struct {
	Run, Runs int    // number of the current run, from 1, and of all runs; 0 before the first run
	Strategy  string // of the current run; in a sweep the point follows
	Round     int
	// Phase is start, baselines, prepare, warm-up, measure, drain or verify, or a message while the servers do not reply.
	Phase     string
	Last      *results.Slice // the window's last second; nil at its beginning and outside it
	Remaining time.Duration  // expected time from the beginning of this run to the end of all runs
}

// Generators describes a group of lockbench processes that measure together, and the place of this process in the
// group. The processes synchronise through the Redis that they measure.
type Generators struct {
	Number int // number of generators; 0 or 1 means only this one
	// Index is the index of this generator, from 0; a negative Index takes any free one. A single generator ignores it.
	Index    int
	Session  string        // name of the session; "" means "default"
	Patience time.Duration // how long a generator waits for a missing one; 0 means two minutes
}

// carried converts the plan to a session.Plan.
func (p Plan) carried() session.Plan {
	stores := map[string]store.Options{store.Redis: p.Redis.options()}
	for name, options := range p.Stores {
		stores[name] = options.options()
	}
	carried := session.Plan{
		Strategies: p.Strategies, Workload: p.Workload, Sweep: p.Sweep, Rounds: p.Rounds, Stores: stores,
		Baselines: p.Baselines, Watch: p.Watch, Ended: p.Ended, Logf: p.Logf,
		Generators: session.Generators(p.Generators),
	}
	if p.Progress != nil {
		carried.Progress = func(now session.Progress) { p.Progress(Progress(now)) }
	}
	return carried
}

// Validate returns all errors of the plan, joined.
func (p Plan) Validate() error { return p.carried().Validate() }

// Titles returns the names of the strategies in the report. In a sweep, each strategy has one title for each point.
func (p Plan) Titles() []string { return p.carried().Titles() }

// Warnings lists settings that are allowed but rarely intended.
func (p Plan) Warnings() results.Remarks { return p.carried().Warnings() }

// Expected returns the approximate duration of Run if Redis is already running. A window that ends after a number of
// iterations counts as 0.
func (p Plan) Expected() time.Duration { return p.carried().Expected() }

// Run executes the plan: it opens the servers, runs the checks of Preflight, measures the baselines, runs every
// strategy in every round, and cleans up.
//
// With several generators, generator 0 returns the merged report of all; every other generator returns a report of its
// own clients, with Report.Shared set. If a generator does not start, dies or is stopped, Run in the other generators
// returns an error that wraps ErrGenerator. Generator 0 returns the data received so far even if it is stopped or Redis
// stops answering.
//
// If Run fails, it still returns a report of the earlier measurements. The report is nil if no server could be opened
// or if the preflight found trouble, such as limits that are too small. If the plan has no seed, Run draws one and
// reports it. When ctx ends, Run cuts the current run short and skips the rest; Report.Interrupted is then set, and Run
// returns no error.
func Run(ctx context.Context, plan Plan) (*results.Report, error) {
	return session.Run(ctx, plan.carried())
}

// Preflight tries, once each, the operations that Run needs on the plan's servers. It returns its findings and a
// description of Redis. Run begins with the same checks: Run fails if a finding is a results.Trouble, and its report
// has a warning for each results.Note. Preflight returns an error if it could not complete the checks or ctx ended.
func Preflight(ctx context.Context, plan Plan) ([]results.Symptom, results.Redis, error) {
	return session.Preflight(ctx, plan.carried())
}

// Version returns the version of the module: a tag, or the commit for a build from a
// work tree.
func Version() string { return session.Version() }
