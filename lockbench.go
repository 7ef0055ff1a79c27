// Package lockbench benchmarks Redis distributed locks. Run carries out a Plan and
// returns a Report: it measures and audits every strategy under the same contention
// on a real Redis.
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
	// ErrUnreachable is returned by Run when no Redis could be reached or started,
	// or when it went away.
	ErrUnreachable = store.ErrUnreachable
	// ErrGenerator is returned by Run when another generator of the session did not come, or went away.
	ErrGenerator = barrier.ErrLost
	// ErrConfig is returned by Run when the plan cannot work here: a server or
	// process limit is too small, or a file is missing. Plan.Validate finds the
	// errors that need no look at the servers.
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
	// Watch gets the report so far once a second, with the run under way as its last one, and who waits in it; and
	// once at the end of each run. It must not change the report, and is called by one goroutine at a time. A
	// driver's run is seen as far as each of its clients has reported. Watch may be nil.
	Watch func(*results.Report, []results.Wait)
	// Ended gets the report of the runs that have ended, once at the end of each. The report is the callee's own, and
	// complete but for what Run adds at its end. Ended is called from one goroutine at a time, and may be nil.
	Ended func(*results.Report)
	// Logf reports what takes time before the first run, such as pulling or building an
	// image; nil means silence. It is called from one goroutine at a time.
	Logf func(format string, args ...any)

	// Generators that measure together share the locks, and begin every run together.
	Generators Generators
}

// StoreOptions say where the servers of a store, such as Redis, come from.
type StoreOptions struct {
	// Address is "auto", "container", "process", image:NAME, process:PROGRAM or a URL of
	// the store: redis://, rediss://, etcd://, postgres:// or zk://. Several URLs are
	// separated by commas: independent nodes, a primary with its replicas, or some nodes
	// of a cluster; lockbench finds out which.
	// redis+sentinel://HOST,HOST/PRIMARY names the Sentinels of a primary.
	// auto means a container if the program imports lockbench/docker and Docker works,
	// otherwise a local process. go-redis logs to standard error; redis.SetLogger changes
	// that.
	Address string
	// Topology is single, nodes:N, replicas:N or cluster:N: what to start, or what
	// must be at the addresses. "" means one node, or whatever is there. Other stores
	// have NAME:N, such as etcd:3.
	Topology string
	CAFile   string // PEM certificates to trust for encrypted addresses
	// CertFile and KeyFile are the client's certificate and its key, PEM, for a Redis that asks for them.
	CertFile, KeyFile string
	Password          string // of a user's Redis, for addresses without one; it is never shown
	Image             string // of the container; "" means redis:8, for other stores the locally built one
	// Durability is memory, default or fsync: what a crash of a started server may lose.
	// "" means memory for Redis, and the others as they are shipped.
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

// Progress describes what a run is doing.
type Progress struct {
	Run, Runs int // from 1
	Strategy  string
	Round     int
	// start, baselines, prepare, warm-up, measure, drain, verify, or that the servers have stopped answering
	Phase     string
	Last      *results.Slice // the window's last second; nil at its beginning and outside it
	Remaining time.Duration  // expected from the beginning of the run until the end of all runs
}

// Generators are lockbenches that measure together. They meet in the Redis that they measure.
type Generators struct {
	Number int // of generators; up to 1 means that this one is alone
	// Index of this one, from 0, unless it is alone; a negative one means any that is free.
	Index    int
	Session  string        // what they call their session; "" is "default"
	Patience time.Duration // how long they wait for one that is missing; 0 is two minutes
}

// carried is the plan as package session takes it.
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

// Validate returns every error of the plan at once, joined.
func (p Plan) Validate() error { return p.carried().Validate() }

// Titles returns the names of the strategies in the report; in a sweep, with their points.
func (p Plan) Titles() []string { return p.carried().Titles() }

// Warnings names settings that are allowed but rarely meant.
func (p Plan) Warnings() results.Remarks { return p.carried().Warnings() }

// Expected is the approximate time of Run if Redis is already running. A window that ends after a
// number of iterations counts as 0.
func (p Plan) Expected() time.Duration { return p.carried().Expected() }

// Run carries the plan out: open the servers, try all that follows once (see Preflight), measure the baselines, run
// every strategy in every round, clean up.
//
// Of several generators, the first returns the report of all, and the others their own, with Report.Shared set.
// If one does not come, dies or is stopped, the error of the others wraps ErrGenerator.
// The first also reports what it has if it is stopped or Redis goes away.
//
// With an error Run still returns a report of what was measured before; it is nil if
// there is no server, or if its limits are too small. If the plan has no seed, Run draws
// one and reports it. When ctx ends, Run cuts the current run short and skips the rest;
// the report says Interrupted, and there is no error.
func Run(ctx context.Context, plan Plan) (*results.Report, error) {
	return session.Run(ctx, plan.carried())
}

// Preflight tries once what Run would do on the plan's servers, and returns what it finds, and what the server is. Run
// begins with the same: a results.Trouble is its error, and a results.Note is a warning of its report. An error of
// Preflight says that the servers could not be tried, or that ctx ended.
func Preflight(ctx context.Context, plan Plan) ([]results.Symptom, results.Redis, error) {
	return session.Preflight(ctx, plan.carried())
}

// Version returns the version of the module: a tag, or the commit for a build from a
// work tree.
func Version() string { return session.Version() }
