// Package lockbench benchmarks Redis distributed locks. Run carries out a Plan and
// returns a Report: it measures and audits every strategy under the same contention
// on a real Redis.
package lockbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
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
	// driver's run is seen when it has ended. Watch may be nil.
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
	Last      *results.Slice // the window's last second; nil at its beginning, outside it, and with drivers
	Remaining time.Duration  // expected from the beginning of the run until the end of all runs
}

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
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	s, err := open(ctx, plan)
	if err != nil {
		return nil, err
	}
	found, err := s.preflight(ctx)
	if err == nil {
		err = found.refusal()
	}
	if err != nil {
		return nil, errors.Join(append([]error{err}, s.abandon(context.WithoutCancel(ctx))...)...)
	}
	s.report.Warnings = append(s.report.Warnings, found.warnings()...)
	measuring, done := s.together.context(ctx)
	defer done()
	if plan.Baselines {
		err = s.measureBaselines(measuring)
	}
	if err == nil {
		err = s.measureRounds(measuring)
	}
	s.report.Interrupted = ctx.Err() != nil
	if err == nil && len(s.report.Runs) == 0 && len(s.report.LeftOut) > 0 {
		err = fmt.Errorf("%w: %w", store.ErrConfig, noneFits(s.report.LeftOut))
	}
	// Close the servers after Ctrl-C too.
	return s.finish(context.WithoutCancel(ctx), err)
}

// Validate returns every error of the plan at once, joined.
func (p Plan) Validate() error {
	var problems []error
	said := map[string]bool{}
	for _, point := range p.points() {
		// Report once what is wrong with several points of a sweep.
		for _, problem := range []error{point.Workload.Validate(), point.Workload.Load(), p.mixes(point.Workload)} {
			if problem != nil && !said[problem.Error()] {
				said[problem.Error()] = true
				problems = append(problems, problem)
			}
		}
	}
	for _, v := range p.Strategies {
		if !v.Info().Driver {
			continue
		}
		undriven := engine.Undriven(v.Info(), p.points()[0].Workload)
		if p.Generators.several() {
			undriven = append(undriven, errors.New("--generators is not supported with a driver (--strategy exec:)"))
		}
		for _, problem := range undriven {
			if !said[problem.Error()] {
				said[problem.Error()] = true
				problems = append(problems, problem)
			}
		}
	}
	if len(p.Strategies) == 0 {
		problems = append(problems, errors.New("--strategy names no strategy"))
	}
	if p.Rounds < 1 {
		problems = append(problems, fmt.Errorf("--runs must be at least 1, not %d", p.Rounds))
	}
	if wrong := p.wrongStores(); len(wrong) > 0 {
		problems = append(problems, wrong...)
	} else {
		problems = append(append(problems, p.fits()), p.files()...)
	}
	problems = append(problems, p.wrongGenerators()...)
	return errors.Join(problems...)
}

// mixes returns an error if a mixed strategy has more parts than there are clients.
func (p Plan) mixes(w workloads.Spec) error {
	for _, v := range p.Strategies {
		if w.Clients > 0 && w.Clients < len(v.Parts) {
			return fmt.Errorf("--strategy %s needs --clients %d, one of each part, not %d",
				v.Name(), len(v.Parts), w.Clients)
		}
	}
	return nil
}

// Titles returns the names of the strategies in the report; in a sweep, with their points.
func (p Plan) Titles() []string {
	var all []string
	for _, v := range p.Strategies {
		for _, point := range p.points() {
			all = append(all, strings.TrimSpace(v.Name()+" "+point.Label))
		}
	}
	return all
}

// Warnings names settings that are allowed but rarely meant.
func (p Plan) Warnings() []string {
	var warnings []string
	for _, point := range p.points() {
		for _, warning := range point.Workload.Warnings() {
			if !slices.Contains(warnings, warning) {
				warnings = append(warnings, warning)
			}
		}
	}
	return warnings
}

// overhead is the approximate time of a run apart from warm-up and window.
const overhead = time.Second

// Expected is the approximate time of Run if Redis is already running. A window that ends after a
// number of iterations counts as 0.
func (p Plan) Expected() time.Duration {
	var total time.Duration
	for _, point := range p.points() {
		total += point.Workload.Expected() + overhead
	}
	total *= time.Duration(len(p.Strategies) * p.Rounds)
	if p.Generators.several() {
		total += time.Duration(len(p.Strategies)*p.Rounds*len(p.points())) * barrier.Lead
	}
	if p.Baselines {
		total += 2 * time.Second
	}
	return total
}

// points returns the workloads to measure.
func (p Plan) points() []workloads.Point {
	if len(p.Sweep) == 0 {
		return []workloads.Point{{Workload: p.Workload}}
	}
	return p.Sweep
}

// largestDrawnSeed keeps random seeds short enough to type.
const largestDrawnSeed = 1_000_000_000

// seeded returns the plan with a seed: if none was given, a random one, the same for all points of a
// sweep. With a fixed seed every session would use the same order.
func (p Plan) seeded() Plan {
	if p.points()[0].Workload.Seed != 0 {
		return p
	}
	return p.withSeed(1 + rand.Int64N(largestDrawnSeed))
}

func (p Plan) withSeed(seed int64) Plan {
	p.Workload.Seed = seed
	p.Sweep = slices.Clone(p.Sweep) // do not change the caller's slice
	for i := range p.Sweep {
		p.Sweep[i].Workload.Seed = seed
	}
	return p
}

// at returns the options of a store.
func (p Plan) at(name string) store.Options {
	if name == store.Redis {
		return p.Redis.options()
	}
	return p.Stores[name].options()
}

// Version returns the version of the module: a tag, or the commit for a build from a
// work tree.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if commit := commit(); commit != "" && (version == "" || version == "(devel)") {
		version = "devel-" + commit[:min(len(commit), 12)]
	}
	return version
}

// commit is the commit of a build from a work tree; "" if it is not known.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	at := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if at < 0 {
		return ""
	}
	return info.Settings[at].Value
}
