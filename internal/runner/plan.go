// Package runner carries out a plan: it opens the servers, checks that the plan can work there,
// measures the baselines, runs every strategy in every round, and cleans up.
package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	_ "github.com/lockbench/lockbench/internal/store/redis" // the store that every program includes
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Plan says what to measure, see lockbench.Plan.
type Plan struct {
	Strategies []strategies.Variant
	Workload   workloads.Spec
	Sweep      []workloads.Point
	Rounds     int
	// Stores holds the stores' options by name; a missing store has the zero value.
	Stores    map[string]store.Options
	Baselines bool
	Progress  func(Progress)
	Logf      func(format string, args ...any)
	Session   string
	Start     time.Time
}

// Progress tells what a run is doing, see lockbench.Progress.
type Progress struct {
	Run, Runs int
	Strategy  string
	Round     int
	Phase     string
	Remaining time.Duration
}

// Validate returns all errors of the plan, joined.
func (p Plan) Validate() error {
	var problems []error
	said := map[string]bool{}
	for _, point := range p.points() {
		// Report once what is wrong with several points of a sweep.
		for _, problem := range []error{point.Workload.Validate(), point.Workload.Load()} {
			if problem != nil && !said[problem.Error()] {
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
	problems = append(problems, p.wrongStores()...)
	problems = append(problems, p.sharedSession()...)
	return errors.Join(problems...)
}

// points returns the workloads to measure.
func (p Plan) points() []workloads.Point {
	if len(p.Sweep) == 0 {
		return []workloads.Point{{Workload: p.Workload}}
	}
	return p.Sweep
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

// Warnings returns what is allowed but rarely intended.
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
	if !p.Start.IsZero() {
		total = max(0, time.Until(p.Start))
		for _, point := range p.points() {
			total += time.Duration(len(p.Strategies)*p.Rounds) * slot(point.Workload)
		}
		return total
	}
	if p.Baselines {
		total += 2 * time.Second
	}
	return total
}

// Run carries out the plan: open the servers, measure the baselines, run every strategy in every
// round, clean up.
//
// With an error the report holds what was measured before; it is nil if there is no server, or
// its limits are too small. A plan without a seed gets one, which the report contains. When
// ctx ends, the current run is cut short and the others do not start; then the report is
// Interrupted and there is no error.
func Run(ctx context.Context, plan Plan) (*results.Report, error) {
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	if err := plan.Feasible(); err != nil {
		return nil, err
	}
	s, err := open(ctx, plan.seeded())
	if err != nil {
		return nil, err
	}
	if err := s.preflight(ctx); err != nil {
		_, _ = s.finish(context.WithoutCancel(ctx), err) // nothing was measured
		return nil, err
	}
	if plan.Baselines {
		err = s.measureBaselines(ctx)
	}
	if err == nil {
		err = s.measureRounds(ctx)
	}
	s.report.Interrupted = ctx.Err() != nil
	if err == nil && len(s.report.Runs) == 0 && len(s.report.LeftOut) > 0 {
		err = fmt.Errorf("%w: nothing that --strategy names can run here: %s", store.ErrConfig, s.report.LeftOut[0].Why)
	}
	// Close the servers after Ctrl-C too.
	return s.finish(context.WithoutCancel(ctx), err)
}

// largestDrawnSeed keeps random seeds short enough to type.
const largestDrawnSeed = 1_000_000_000

// seeded returns the plan with a seed: if none was given, a random one, the same for all points of a
// sweep. With a fixed seed every session would use the same order.
func (p Plan) seeded() Plan {
	if p.points()[0].Workload.Seed != 0 {
		return p
	}
	seed := 1 + rand.Int64N(largestDrawnSeed)
	p.Workload.Seed = seed
	p.Sweep = slices.Clone(p.Sweep) // do not change the caller's slice
	for i := range p.Sweep {
		p.Sweep[i].Workload.Seed = seed
	}
	return p
}
