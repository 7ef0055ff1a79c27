package session

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// scheduled is one run of a round: a strategy at a point of the sweep.
type scheduled struct {
	strategies.Variant
	point workloads.Point
}

// measureRounds runs every strategy once per round at every point of the sweep. The seed shuffles the order in each
// round, so that a drift of the machine's speed affects all strategies alike.
func (s *session) measureRounds(ctx context.Context) error {
	s.chooseStrategies()
	for round := 1; round <= s.plan.Rounds; round++ {
		var order []scheduled
		for _, v := range s.strategies {
			for _, point := range s.plan.points() {
				order = append(order, scheduled{v, point})
			}
		}
		shuffle := mathrand.New(mathrand.NewPCG(s.order(), uint64(round)))
		shuffle.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i, next := range order {
			if ctx.Err() != nil {
				return nil
			}
			// Count the run even if this generator skips it, because another generator may execute it, and both must use the
			// same run numbers.
			s.begun++
			var err error
			if !s.leftOut(next.Variant) {
				err = s.measure(ctx, next, round, i+1)
			}
			if s.together != nil {
				err = errors.Join(err, s.together.pass(ctx))
			}
			if err != nil {
				return errors.Join(append(s.failures, err)...)
			}
		}
	}
	return errors.Join(s.failures...)
}

// chooseStrategies leaves out the strategies that cannot run on these servers.
func (s *session) chooseStrategies() {
	s.strategies = slices.DeleteFunc(s.strategies, func(v strategies.Variant) bool {
		why := s.unfit(v)
		if why != "" {
			s.leaveOut(v, results.Unfit, why)
		}
		return why != ""
	})
	for _, v := range s.strategies {
		info := v.Info()
		s.report.Strategies = append(s.report.Strategies, results.Strategy{
			Name:       v.Name(),
			Store:      info.Store,
			Durability: s.durability(v),
			Summary:    info.Summary,
			Claims:     info.Claims.List(),
			Caveat:     info.Caveat,
			Capacity:   info.Capacity,
			Instances:  v.Instances(s.report.Workload.Instances),
			BlackBox:   info.BlackBox,
		})
	}
	s.report.Warnings = append(s.report.Warnings, unlike(s.report.Strategies)...)
}

// unfit returns why a strategy cannot run on these servers; "" if it can.
func (s *session) unfit(v strategies.Variant) string {
	if why := unfit(v.Info(), s.report.Workload, s.server(v)); why != "" {
		return why
	}
	return s.unsupported[v.Name()]
}

// unfit returns why a strategy cannot run on servers of this layout. A nil layout means that the strategy uses no
// server.
func unfit(info strategies.Info, w workloads.Spec, layout store.Layout) string {
	switch {
	case len(w.Faults) > 0 && info.Nodes == 0:
		return "the strategy works within the process, but faults act on servers and their clients"
	case info.OnlyCounter && w.Work != workloads.WorkCounter:
		return "the strategy is not a lock and runs only with --work counter"
	case layout == nil:
		return ""
	}
	return layout.Unfit(info)
}

// leaveOut records in the report that a strategy is left out, and why.
func (s *session) leaveOut(v strategies.Variant, code results.Code, why string) {
	s.report.LeftOut = append(s.report.LeftOut,
		results.LeftOut{Strategy: v.Name(), Why: code.Remark(untrusted.Printable(why))})
}

// measure runs one strategy once and adds the run to the report. If the strategy fails, the session leaves that
// strategy out from then on. If measure returns an error, the session ends.
func (s *session) measure(ctx context.Context, v scheduled, round, order int) error {
	server := s.server(v.Variant)
	if server != nil { // wait until the servers have recovered from the faults of an earlier run
		if err := server.Settle(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("before %s: %w", v.Name(), err)
		}
	}
	title := results.Run{Strategy: v.Name(), Point: v.point.Label}.Title()
	job := engine.Job{
		Strategy: v.Variant,
		Workload: v.point.Workload,
		Target:   server,
		Hub:      s.hub(v.Variant, v.point.Workload),
		Session:  s.id,
		Number:   s.begun,
		Round:    round,
		Order:    order,
		Phase:    func(phase string) { s.progress(title, round, phase, s.begun, nil) },
	}
	job.Transactor = s.rows(v.point.Workload)
	if s.together != nil {
		job.Generator, job.Begin = strconv.Itoa(s.together.Index), s.together.begin
	}
	job.Second = func(last results.Slice) { s.progress(title, round, "measure", s.begun, &last) }
	watched := func(all []results.Run, waiting []results.Wait) {
		soFar := *s.report
		soFar.Runs = all
		s.plan.Watch(&soFar, waiting)
	}
	if s.plan.Watch != nil {
		job.Watch = func(run results.Run, waiting []results.Wait) {
			run.Point = v.point.Label
			watched(append(slices.Clone(s.report.Runs), run), waiting)
		}
	}
	if server != nil && len(v.point.Workload.Faults) > 0 {
		injector := server.Faults(v.point.Workload.Faults)
		defer injector.Close()
		job.Faults = injector
	}
	run, err := job.Run(ctx)
	if run != nil {
		run.Point = v.point.Label
		s.together.onServersClock(ctx, run)
		s.report.Runs = append(s.report.Runs, *run)
		if s.plan.Watch != nil {
			watched(s.report.Runs, nil)
		}
		if s.plan.Ended != nil {
			soFar := *s.report
			soFar.Runs = slices.Clone(s.report.Runs)
			s.plan.Ended(&soFar)
		}
		if run.Server.Whole != nil && s.plan.storeOf(v.Variant) == store.Redis {
			s.granted += run.Server.Whole.Acquisitions
		}
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	lost := errors.Is(err, engine.ErrServerGone)
	if !lost && server != nil {
		if gone := server.Ping(ctx); gone != nil {
			lost, err = true, fmt.Errorf("%w: %w", gone, err)
		}
	}
	if lost && !errors.Is(err, store.ErrUnreachable) {
		err = fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	if lost {
		return fmt.Errorf("during %s: %w", v.Name(), err)
	}
	if s.together.failed() != nil {
		return nil // pass returns the error
	}
	if !errors.Is(err, engine.ErrUnsupported) {
		s.failures = append(s.failures, fmt.Errorf("run %s: %w", v.Name(), err))
	}
	s.leaveOut(v.Variant, results.FailedToRun, err.Error())
	s.strategies = slices.DeleteFunc(s.strategies,
		func(other strategies.Variant) bool { return other.Name() == v.Name() })
	return nil
}

// leftOut reports whether a strategy was left out after the round began.
func (s *session) leftOut(v strategies.Variant) bool {
	return !slices.ContainsFunc(s.strategies, func(left strategies.Variant) bool { return left.Name() == v.Name() })
}
