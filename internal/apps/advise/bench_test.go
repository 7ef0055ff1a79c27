package advise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// pretend carries a plan out in no time: handoff is the best, always.
func pretend(plan lockbench.Plan) *results.Report {
	var locks []lock
	for _, v := range plan.Strategies {
		l := lock{name: v.Name(), served: 200, wait: 20, cpu: 50}
		if l.name == "handoff" {
			l.served = 500
		}
		locks = append(locks, l)
	}
	return reported(plan.Rounds, locks...)
}

func TestAnswersMeasureTheMatrixThenTheChoice(t *testing.T) {
	t.Parallel()
	for purpose, want := range map[Purpose][]string{
		Efficiency:  {"redsync:tuned=true,spin,gated:spin,pubsub,handoff,cohort", "atomic,handoff"},
		Correctness: {"fenced,gated:fenced,handoff,cohort", "atomic,handoff"},
	} {
		var plans []string
		b := Bench{Run: func(_ context.Context, plan lockbench.Plan) (*results.Report, error) {
			if err := plan.Validate(); err != nil {
				t.Error(err)
			}
			plans = append(plans, names(plan.Strategies))
			return pretend(plan), errors.New("of a strategy that was left out")
		}}
		q := asked(func(q *Question) { q.For, q.Workload.Work = purpose, workloads.WorkCounter })
		a, err := b.Answer(t.Context(), q)
		if err != nil || !slices.Equal(plans, want) || named(a.Choice) != "handoff" {
			t.Errorf("%v: it measured %q and recommends %q", err, plans, named(a.Choice))
		}
		sound(t, a)
		if len(a.Commands) < len(plans) || len(q.Plans()) != len(plans) {
			t.Errorf("it names %q", a.Commands)
		}
	}
}

func TestAnswersEndEarly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := Bench{Run: func(_ context.Context, plan lockbench.Plan) (*results.Report, error) {
		cancel()
		return pretend(plan), nil
	}}
	a, err := b.Answer(ctx, asked(nil))
	if err != nil || !a.Interrupted || a.Choice != nil || len(a.Ranking) == 0 {
		t.Errorf("%v, it recommends %q", err, named(a.Choice))
	}
	gone := fmt.Errorf("%w: away", lockbench.ErrUnreachable)
	b.Run = func(context.Context, lockbench.Plan) (*results.Report, error) { return nil, gone }
	if a, err := b.Answer(t.Context(), asked(nil)); !errors.Is(err, gone) || a.Choice != nil {
		t.Errorf("%v", err)
	}
}
