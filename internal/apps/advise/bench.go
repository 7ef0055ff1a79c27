package advise

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Bench carries out the plans.
type Bench struct {
	// Run measures a plan; usually lockbench.Run.
	Run      func(context.Context, lockbench.Plan) (*results.Report, error)
	Progress func(lockbench.Progress) // may be nil
	// Say reports progress; may be nil.
	Say func(format string, args ...any)
}

// Answer measures what the question needs: the matrix, then the experiments with the chosen lock. When
// ctx ends, the advice is Interrupted and has no choice. The error means that there is no Redis.
func (b *Bench) Answer(ctx context.Context, q Question) (*Document, error) {
	begun := time.Now()
	m, commands, err := b.measure(ctx, q)
	a := q.advise(m)
	a.Commands, a.Started, a.Finished, a.Interrupted = commands, begun, time.Now(), ctx.Err() != nil
	if m.Locks != nil {
		a.Environment, a.Redis = m.Locks.Environment, m.Locks.Redis
	}
	if a.Interrupted || err != nil {
		a.Choice = nil
	}
	return a, err
}

func (b *Bench) measure(ctx context.Context, q Question) (m measured, commands []string, err error) {
	run := func(plan lockbench.Plan, what string) *results.Report {
		if ctx.Err() != nil || err != nil {
			return nil
		}
		if b.Say != nil {
			b.Say("%s: %s", what, names(plan.Strategies))
		}
		plan.Progress = b.Progress
		var report *results.Report
		report, err = b.Run(ctx, plan)
		if report != nil && !errors.Is(err, lockbench.ErrUnreachable) {
			err = nil // of a strategy in the report's LeftOut
		}
		return report
	}
	plan := q.locks()
	commands = append(commands, Commands(plan)...)
	m.Locks = run(plan, "the contention asked about")
	lock, ok := q.chosen(m.Locks)
	if !ok {
		return m, commands, err
	}
	for _, next := range []struct {
		what string
		plan func(strategies.Variant) (lockbench.Plan, bool)
		into **results.Report
	}{
		{"one command instead of a lock", q.update, &m.Update},
		{"one acquisition for all waiters of an instance", q.share, &m.Shared},
	} {
		if plan, fits := next.plan(lock); fits {
			commands = append(commands, Commands(plan)...)
			*next.into = run(plan, next.what)
		}
	}
	return m, commands, err
}
