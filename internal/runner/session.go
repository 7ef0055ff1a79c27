package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// session is a plan under way.
type session struct {
	plan       Plan
	id         string
	generator  string       // among those that share the session; "" if it is alone
	start      time.Time    // of the next run's warm-up; zero is at once
	server     store.Server // nil if no strategy talks to Redis
	strategies []strategies.Variant
	report     *results.Report
	before     *results.Reading
	begun      int // runs
	granted    int64
	failures   []error // of strategies that were left out for them
}

// open gets a Redis, if any strategy needs one.
func open(ctx context.Context, plan Plan) (*session, error) {
	s := &session{plan: plan, id: store.NewRunID(), start: plan.Start, strategies: slices.Clone(plan.Strategies)}
	if plan.Session != "" {
		s.id, s.generator = plan.Session, s.id
	}
	s.report = &results.Report{
		Schema:   results.Schema,
		Tool:     results.Tool{Name: "lockbench", Version: Version(), Commit: buildSetting("vcs.revision")},
		Started:  time.Now(),
		Redis:    results.Redis{Source: "none", Why: "no strategy talks to Redis"},
		Workload: plan.points()[0].Workload,
		Points:   plan.Sweep,
		Rounds:   plan.Rounds,
		Warnings: plan.Warnings(),
		Runs:     []results.Run{},
	}
	s.progress("", 0, "start", 0)
	if slices.ContainsFunc(plan.Strategies, func(v strategies.Variant) bool { return engine.NeedsRedis(v.Info(), s.report.Workload) }) {
		server, err := plan.kind().Open(ctx, s.id, plan.Store)
		if err != nil {
			return nil, err
		}
		s.server = server
		s.report.Redis = server.Describe()
		if s.generator != "" {
			s.report.Shared = &results.Shared{Session: s.id, Generator: s.generator, RedisRuns: server.RunIDs()}
		}
		if wrong := server.Impossible(s.report.Workload.Faults); len(wrong) > 0 {
			return nil, errors.Join(fmt.Errorf("%w: %w", store.ErrConfig, errors.Join(wrong...)), server.Close(context.WithoutCancel(ctx)))
		}
		s.before = s.read(ctx)
	}
	// After the server is open: pinning has been done by then.
	s.report.Environment = measure.Environment()
	if s.server != nil {
		s.report.Environment.PinnedCPUs = s.server.GeneratorCPUs()
	}
	return s, nil
}

func (s *session) read(ctx context.Context) *results.Reading {
	reading, err := s.server.Read(ctx)
	if err != nil {
		return nil
	}
	return &reading
}

// last is the reading at the end. Servers that have stopped answering are not waited for.
func (s *session) last(ctx context.Context, err error) *results.Reading {
	if errors.Is(err, store.ErrUnreachable) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
	}
	return s.read(ctx)
}

// target is the server as the engine sees it.
func (s *session) target() store.Target {
	if s.server == nil {
		return nil
	}
	return s.server
}

// progress tells where the session is.
func (s *session) progress(strategy string, round int, phase string, run int) {
	if s.plan.Progress == nil {
		return
	}
	runs := len(s.strategies) * len(s.plan.points()) * s.plan.Rounds
	all := s.plan.Expected()
	s.plan.Progress(Progress{
		Run: run, Runs: runs, Strategy: strategy, Round: round, Phase: phase,
		Remaining: max(0, all-all*time.Duration(max(run-1, 0))/time.Duration(max(runs, 1))),
	})
}

// finish closes the server and completes the report.
func (s *session) finish(ctx context.Context, err error) (*results.Report, error) {
	if s.server != nil {
		if after := s.last(ctx, err); after != nil && s.before != nil {
			s.report.Server = after.Since(*s.before, s.granted)
		}
		if closeErr := s.server.Close(ctx); closeErr != nil {
			s.report.Warnings = append(s.report.Warnings, closeErr.Error())
		}
	}
	if err != nil {
		s.report.Error = err.Error()
		s.report.Unreachable = errors.Is(err, store.ErrUnreachable)
	}
	s.report.Finished = time.Now()
	return s.report, err
}
