package advise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// pretend carries a plan out in no time: handoff is the best, always.
func pretend(plan lockbench.Plan) *results.Report {
	r := &results.Report{}
	points := plan.Sweep
	labels := []string{""}
	if len(points) > 0 {
		labels = []string{points[0].Label, points[1].Label}
	}
	var locks []lock
	for _, v := range plan.Strategies {
		l := lock{name: v.Name(), served: 200, wait: 20, cpu: 50}
		if l.name == "handoff" {
			l.served = 500
		}
		locks = append(locks, l)
	}
	for _, label := range labels {
		part := reported(plan.Rounds, label, locks...)
		r.Strategies, r.Runs, r.Points, r.Rounds = part.Strategies, append(r.Runs, part.Runs...), points, plan.Rounds
	}
	return r
}

func TestAnswersMeasureTheMatrixThenTheChoice(t *testing.T) {
	t.Parallel()
	for purpose, want := range map[Purpose][]string{
		Efficiency:  {"redsync:tuned=true,spin,gated:spin,pubsub,handoff,cohort", "handoff"},
		Correctness: {"fenced,gated:fenced,handoff,cohort"},
	} {
		var plans []string
		b := Bench{Run: func(_ context.Context, plan lockbench.Plan) (*results.Report, error) {
			if err := plan.Validate(); err != nil {
				t.Error(err)
			}
			plans = append(plans, names(plan.Strategies))
			return pretend(plan), errors.New("of a strategy that was left out")
		}}
		q := asked(func(q *Question) { q.For, q.Coalesce = purpose, true })
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

// TestSharingIsTriedOnlyWhereItIsAskedFor: neither measured nor said without.
func TestSharingIsTriedOnlyWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{false, true} {
		tried := false
		b := Bench{Run: func(_ context.Context, plan lockbench.Plan) (*results.Report, error) {
			for _, point := range plan.Sweep {
				tried = tried || point.Workload.Coalesce
			}
			if plan.Workload.Coalesce {
				t.Error("the locks are measured with sharing")
			}
			return pretend(plan), nil
		}}
		a, err := b.Answer(t.Context(), asked(func(q *Question) { q.Coalesce = wanted }))
		if err != nil || tried != wanted || strings.Contains(strings.Join(a.Commands, "\n"), "--coalesce") != wanted {
			t.Errorf("%v: asked for %v, it was tried: %v, %q", err, wanted, tried, a.Commands)
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
