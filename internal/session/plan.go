package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/barrier"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Plan is lockbench.Plan, which documents the fields.
type Plan struct {
	Strategies []strategies.Variant
	Workload   workloads.Spec
	Sweep      []workloads.Point
	Rounds     int
	Stores     map[string]store.Options // including Redis, by the names in Info.Store
	Baselines  bool
	Progress   func(Progress)
	Watch      func(*results.Report, []results.Wait)
	Ended      func(*results.Report)
	Logf       func(format string, args ...any)
	Generators Generators
}

// Progress is lockbench.Progress, which documents the fields.
type Progress struct {
	Run, Runs int
	Strategy  string
	Round     int
	Phase     string
	Last      *results.Slice
	Remaining time.Duration
}

// Validate returns every error of the plan at once, joined.
func (p Plan) Validate() error {
	var problems []error
	said := map[string]bool{}
	for _, point := range p.points() {
		// Report an error once, even if several points of a sweep have it.
		for _, problem := range []error{point.Workload.Load(), point.Workload.Validate(), p.mixes(point.Workload)} {
			if problem != nil && !said[problem.Error()] {
				said[problem.Error()] = true
				problems = append(problems, problem)
			}
		}
	}
	if p.Generators.several() && p.points()[0].Workload.Arrivals.File() != "" {
		problems = append(problems,
			errors.New("--generators is not supported with --arrivals file: each generator would play the whole trace"))
	}
	if p.Generators.several() && p.transacts() {
		problems = append(problems, errors.New(
			"--generators is not supported with --work transaction: each generator has rows that the others do not change"))
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
			return fmt.Errorf("--strategy %s needs at least --clients %d, one client for each part, not %d",
				v.Name(), len(v.Parts), w.Clients)
		}
	}
	return nil
}

// Titles returns the names of the strategies in the report. In a sweep, each strategy has one title per point, which
// also names the point.
func (p Plan) Titles() []string {
	var all []string
	for _, v := range p.Strategies {
		for _, point := range p.points() {
			all = append(all, strings.TrimSpace(v.Name()+" "+point.Label))
		}
	}
	return all
}

// Warnings returns a remark for each setting that is allowed but rarely intended.
func (p Plan) Warnings() results.Remarks {
	var warnings results.Remarks
	for _, point := range p.points() {
		for _, warning := range point.Workload.Warnings() {
			warnings = warnings.Once(results.RarelyMeant.Remark(warning))
		}
	}
	return warnings
}

// overhead is the approximate time of a run apart from warm-up and window.
const overhead = time.Second

// Expected is the approximate duration of Run if Redis is already running. A window that ends after a number of
// iterations counts as 0.
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

// points returns the workloads to measure: those of the sweep, or the single workload of a plan without a sweep.
func (p Plan) points() []workloads.Point {
	if len(p.Sweep) == 0 {
		return []workloads.Point{{Workload: p.Workload}}
	}
	return p.Sweep
}

// largestDrawnSeed limits random seeds to a length that a user can type.
const largestDrawnSeed = 1_000_000_000

// seeded returns the plan with a seed. If the user gave none, it draws one seed for all points of a sweep, because with
// a fixed default every session would run the strategies in the same order.
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
