// Package lockbench benchmarks Redis distributed locks: a Plan goes in, a
// Report comes out, and between them every strategy is driven through the same
// contention on a real Redis, measured and audited.
package lockbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/store/redis/disturb"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

var (
	// ErrUnreachable is returned by Run when no Redis could be reached or started,
	// or it went away.
	ErrUnreachable = servers.ErrUnreachable
	// ErrConfig is returned by Run when the plan cannot work here: a server or
	// process limit is too small, a file is missing. Plan.Validate finds the
	// faults that need no look at the machine.
	ErrConfig = servers.ErrConfig
)

// Plan says what to measure.
type Plan struct {
	Strategies []strategies.Variant
	Workload   workloads.Spec
	// Sweep are the workloads to measure one by one; without any it is Workload alone.
	Sweep    []workloads.Point
	Rounds   int // runs of each strategy at each point, interleaved; at least 1
	Redis    RedisOptions
	Floors   bool           // measure the floors first
	Progress func(Progress) // called from one goroutine at a time; may be nil

	// Session is what generators that measure together have in common: by it they
	// share keys. "" is a session of this one alone.
	Session string
	// Start is when the first run's warm-up begins; the others follow at fixed times,
	// see Plan.slot. Zero is as soon as each of them can.
	Start time.Time
}

// RedisOptions say where the Redis of the run comes from.
type RedisOptions struct {
	// Address is "auto", "container", "process" or a redis:// or rediss:// URL, or
	// several URLs with commas in between: independent nodes, a primary with its
	// replicas, or some nodes of a cluster, which is found out.
	// auto is a container if Docker works, else a local redis-server process.
	Address string
	// Topology is single, nodes:N, replicas:N or cluster:N: what to start, or what
	// there must be at the addresses. "" is one node, or whatever is there.
	Topology string
	CAFile   string // PEM, to trust for rediss://
	Image    string // of the container; "" is redis:8, else the locally built one
	Pin      bool   // put server and generator on disjoint CPUs
	// AllowFaults lets the workload's faults disturb servers that lockbench did not
	// start.
	AllowFaults bool
}

func (r RedisOptions) options() servers.Options {
	return servers.Options{Address: r.Address, Topology: r.Topology, CAFile: r.CAFile, Image: r.Image, Pin: r.Pin}
}

// Progress tells what a run is doing.
type Progress struct {
	Run, Runs int // from 1
	Strategy  string
	Round     int
	Phase     string        // start, floors, prepare, warm-up, measure, drain, verify, or workloads.PhaseGone
	Remaining time.Duration // expected until the end of all runs
}

// Validate returns every fault of the plan at once, joined.
func (p Plan) Validate() error {
	var faults []error
	said := map[string]bool{}
	for _, point := range p.points() {
		// What is wrong with all points of a sweep is said once.
		for _, fault := range []error{point.Workload.Validate(), point.Workload.Load()} {
			if fault != nil && !said[fault.Error()] {
				said[fault.Error()] = true
				faults = append(faults, fault)
			}
		}
	}
	if len(p.Strategies) == 0 {
		faults = append(faults, errors.New("--strategy names no strategy"))
	}
	if p.Rounds < 1 {
		faults = append(faults, fmt.Errorf("--runs must be at least 1, not %d", p.Rounds))
	}
	faults = append(faults, p.Redis.options().Validate())
	faults = append(faults, p.together()...)
	if topology, err := servers.ParseTopology(p.Redis.Topology); err == nil {
		options := p.Redis.options()
		if options.Started() && topology.Kind == "" {
			topology.Kind = servers.Single
		}
		faults = append(faults, disturb.Check(p.points()[0].Workload.Faults, topology, options.Started(), p.Redis.AllowFaults)...)
	}
	return errors.Join(faults...)
}

// points are the workloads to measure.
func (p Plan) points() []workloads.Point {
	if len(p.Sweep) > 0 {
		return p.Sweep
	}
	return []workloads.Point{{Workload: p.Workload}}
}

// Titles are the names by which its strategies, of a sweep with their points, stand in
// the report.
func (p Plan) Titles() []string {
	var all []string
	for _, v := range p.Strategies {
		for _, point := range p.points() {
			all = append(all, strings.TrimSpace(v.Name()+" "+point.Label))
		}
	}
	return all
}

// Warnings names what is allowed but rarely meant.
func (p Plan) Warnings() []string {
	var warnings []string
	for _, point := range p.points() {
		for _, warning := range append(point.Workload.Warnings(), p.fairRound(point.Workload)) {
			if warning != "" && !slices.Contains(warnings, warning) {
				warnings = append(warnings, warning)
			}
		}
	}
	return warnings
}

// overhead is about what a run takes beside warm-up and window.
const overhead = time.Second

// Expected is about how long Run will take, Redis already running. A window that
// ends after a number of iterations counts as nothing.
func (p Plan) Expected() time.Duration {
	var total time.Duration
	for _, point := range p.points() {
		total += point.Workload.Expected() + overhead
	}
	total *= time.Duration(len(p.Strategies) * p.Rounds)
	if !p.Start.IsZero() {
		total = max(0, time.Until(p.Start))
		for _, point := range p.points() {
			total += time.Duration(len(p.Strategies)*p.Rounds) * slot(point.Workload)
		}
		return total
	}
	if p.Floors {
		total += 2 * time.Second
	}
	return total
}

// Run carries the plan out: open Redis, measure the floors, run every strategy
// in every round, clean up.
//
// The report comes also with an error and holds what was measured before it; it
// is nil when no Redis could be had, or its limits are too small. A plan without a
// seed gets one, which the report has. When ctx ends the run under way is cut
// short, the rest is left out and the report says Interrupted, without an error.
func Run(ctx context.Context, plan Plan) (*results.Report, error) {
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := plan.Feasible(); err != nil {
		return nil, err
	}
	s, err := open(ctx, plan.seeded())
	if err != nil {
		return nil, err
	}
	if err := s.preflight(ctx); err != nil {
		_, _ = s.finish(context.WithoutCancel(ctx), err) // it tells of nothing that was measured
		return nil, err
	}
	if plan.Floors {
		err = s.measureFloors(ctx)
	}
	if err == nil {
		err = s.measureRounds(ctx)
	}
	s.report.Interrupted = ctx.Err() != nil
	if err == nil && len(s.report.Runs) == 0 && len(s.report.LeftOut) > 0 {
		err = fmt.Errorf("%w: nothing that --strategy names can run here: %s", ErrConfig, s.report.LeftOut[0].Why)
	}
	// The servers are closed also after Ctrl-C.
	return s.finish(context.WithoutCancel(ctx), err)
}
