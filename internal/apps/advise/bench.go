package advise

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// Bench carries out the plans.
type Bench struct {
	// Run measures a plan; usually lockbench.Run.
	Run      func(context.Context, lockbench.Plan) (*results.Report, error)
	Progress func(lockbench.Progress) // may be nil
	// Say reports progress; may be nil.
	Say func(format string, args ...any)
}

// Answer measures what the question needs: the matrix, then the experiment with the chosen lock. When
// ctx ends, the advice is Interrupted and has no choice. The error means that there is no Redis.
func (b *Bench) Answer(ctx context.Context, q Question) (*Document, error) {
	begun, plans := time.Now(), []lockbench.Plan{q.locks()}
	var m measured
	var err error
	m.Locks, err = b.measure(ctx, plans[0], "the contention asked about")
	if ranking, _ := q.contenders(m.Locks); len(ranking) > 0 && err == nil && ctx.Err() == nil {
		if plan, fits := q.update(ranking[0].variant); fits {
			plans = append(plans, plan)
			m.Update, err = b.measure(ctx, plan, "one command instead of a lock")
		}
	}
	a := q.advise(m)
	a.Commands, a.Started, a.Finished, a.Interrupted = Commands(plans...), begun, time.Now(), ctx.Err() != nil
	if m.Locks != nil {
		a.Environment, a.Redis = m.Locks.Environment, m.Locks.Redis
	}
	if a.Interrupted || err != nil {
		a.Choice = nil
	}
	return a, err
}

func (b *Bench) measure(ctx context.Context, plan lockbench.Plan, what string) (*results.Report, error) {
	if b.Say != nil {
		b.Say("%s: %s", what, names(plan.Strategies))
	}
	plan.Progress = b.Progress
	report, err := b.Run(ctx, plan)
	if report != nil && !errors.Is(err, lockbench.ErrUnreachable) {
		err = nil // of a strategy in the report's LeftOut
	}
	return report, err
}
