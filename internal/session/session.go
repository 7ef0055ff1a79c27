// Package session executes a plan. session.go contains its steps: open the stores (stores.go), run the preflight
// (preflight.go with limits.go and rights.go), measure the baselines (baselines.go), run every strategy in every round
// (rounds.go), and complete the report. plan.go defines and validates plans. generators.go lets several processes
// measure one plan together.
package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Run implements lockbench.Run, which documents it.
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
	// The session closes the servers after Ctrl-C too.
	return s.finish(context.WithoutCancel(ctx), err)
}

// session is the state of a plan while it runs.
type session struct {
	plan        Plan
	seedGiven   bool
	own, id     string        // run IDs: own is in the keys of this process alone, id in those that all generators share
	together    *together     // nil for a single generator
	servers     []namedServer // of the stores that strategies use, Redis first
	strategies  []strategies.Variant
	unsupported map[string]string // by strategy, the error that shows what the servers do not support
	report      *results.Report
	before      *results.Reading
	begun       int // runs begun
	granted     int64
	failures    []error // the errors for which strategies were left out
}

// open opens the stores that the strategies need.
func open(ctx context.Context, plan Plan) (*session, error) {
	s := &session{
		plan: plan.seeded(), seedGiven: plan.points()[0].Workload.Seed != 0, own: store.NewRunID(),
		strategies: slices.Clone(plan.Strategies), unsupported: map[string]string{},
	}
	plan = s.plan
	s.report = &results.Report{
		Schema:   results.Schema,
		Tool:     results.Tool{Name: "lockbench", Version: Version(), Commit: commit()},
		Started:  time.Now(),
		Redis:    results.Redis{Source: "none", Why: "no strategy talks to Redis"},
		Workload: plan.points()[0].Workload,
		Points:   plan.Sweep,
		Rounds:   plan.Rounds,
		Warnings: plan.Warnings(),
		Runs:     []results.Run{},
	}
	s.id = s.own
	s.progress("", 0, "start", 0, nil)
	if err := s.openStores(ctx); err != nil {
		if len(s.servers) > 0 && s.servers[0].server.Refused(err) != "" { // list all missing rights
			if found, failed := s.preflight(ctx); failed == nil && found.refusal() != nil {
				err = found.refusal()
			}
		}
		ctx = context.WithoutCancel(ctx)
		return nil, errors.Join(append([]error{err}, s.abandon(ctx)...)...)
	}
	s.report.Environment = measure.Environment()
	if s.together != nil {
		for _, p := range s.servers {
			s.report.Shared.RedisRuns = append(s.report.Shared.RedisRuns, p.server.RunIDs()...)
		}
	}
	s.before = s.read(ctx)
	return s, nil
}

// read returns a reading of Redis's counters; nil if the reading fails or the session has no Redis.
func (s *session) read(ctx context.Context) *results.Reading {
	redis := s.named(store.Redis)
	if redis == nil {
		return nil
	}
	reading, err := redis.Read(ctx)
	if err != nil {
		return nil
	}
	return &reading
}

// last returns the final reading. If the servers have stopped replying, it waits for at most 200 ms.
func (s *session) last(ctx context.Context, err error) *results.Reading {
	if errors.Is(err, store.ErrUnreachable) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
	}
	return s.read(ctx)
}

// progress reports what the session is doing. last is the latest second of the window; nil if the session is in another
// phase.
func (s *session) progress(strategy string, round int, phase string, run int, last *results.Slice) {
	if s.plan.Progress == nil {
		return
	}
	runs := len(s.strategies) * len(s.plan.points()) * s.plan.Rounds
	all := s.plan.Expected()
	s.plan.Progress(Progress{
		Run: run, Runs: runs, Strategy: strategy, Round: round, Phase: phase, Last: last,
		Remaining: max(0, all-all*time.Duration(max(run-1, 0))/time.Duration(max(runs, 1))),
	})
}

// finish closes the servers and completes the report.
func (s *session) finish(ctx context.Context, err error) (*results.Report, error) {
	if after := s.last(ctx, err); after != nil && s.before != nil {
		s.report.Server = after.Since(*s.before, s.granted)
	}
	if err != nil {
		s.report.Error = untrusted.Printable(err.Error())
		s.report.Unreachable = errors.Is(err, store.ErrUnreachable)
	}
	s.report.Finished = time.Now()
	if problem := s.handIn(ctx, err); problem != nil {
		err = errors.Join(err, problem)
	}
	for _, problem := range s.closeStores(ctx) {
		s.report.Warnings = append(s.report.Warnings, results.NotClosed.Remark(untrusted.Printable(problem.Error())))
	}
	return s.report, err
}
