// Package runner carries a plan out: it opens the servers, looks whether the plan can work
// there, measures the floors, runs every strategy in every round, and cleans up.
package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	_ "github.com/lockbench/lockbench/internal/store/redis" // the store that every program has
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
	// Stores are the stores' options, by their names; of one that is not there the zero value.
	Stores map[string]store.Options
	// Servers are further Redis servers, to be compared with that of Stores: every strategy
	// runs on each of them in every round.
	Servers   []store.Options
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

// Validate returns every error of the plan at once, joined.
func (p Plan) Validate() error {
	var problems []error
	said := map[string]bool{}
	for _, point := range p.points() {
		// What is wrong with all points of a sweep is said once.
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
	problems = append(problems, p.wrongArms()...)
	problems = append(problems, p.sharedSession()...)
	return errors.Join(problems...)
}

// point is a workload to measure, and on which of the Redis servers.
type point struct {
	workloads.Point
	arm int
}

// points are the workloads to measure, of several Redis servers on each.
func (p Plan) points() []point {
	sweep := p.Sweep
	if len(sweep) == 0 {
		sweep = []workloads.Point{{Workload: p.Workload}}
	}
	var all []point
	labels := p.labels()
	for _, of := range sweep {
		for arm, label := range labels {
			all = append(all, point{workloads.Point{Label: strings.TrimSpace(of.Label + " " + label), Workload: of.Workload}, arm})
		}
	}
	return all
}

// shown are the points for the report; nil for one that needs no label.
func (p Plan) shown() []workloads.Point {
	if len(p.Sweep) == 0 && len(p.Servers) == 0 {
		return nil
	}
	var all []workloads.Point
	for _, of := range p.points() {
		all = append(all, of.Point)
	}
	return all
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
	if p.Baselines {
		total += 2 * time.Second
	}
	return total
}

// Run carries the plan out: open Redis, measure the baselines, run every strategy
// in every round, clean up.
//
// The report comes also with an error and holds what was measured before it; it
// is nil when no Redis could be had, or its limits are too small. A plan without a
// seed gets one, which the report has. When ctx ends the run under way is cut
// short, the rest is left out and the report says Interrupted, without an error.
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
		_, _ = s.finish(context.WithoutCancel(ctx), err) // it tells of nothing that was measured
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
	// The servers are closed also after Ctrl-C.
	return s.finish(context.WithoutCancel(ctx), err)
}
