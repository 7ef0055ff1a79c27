package advise

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

func TestRoundsThatCannotBeTrustedAreRepeated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		spoil    func(plan, round int, strategy string) bool
		left     bool  // spin is left out
		rounds   []int // of each plan of the matrix
		complete int
	}{
		{"none", func(int, int, string) bool { return false }, false, []int{6}, 6},
		{"two", func(plan, round int, s string) bool {
			return plan == 0 && (round == 1 && s == "spin" || round == 4 && s == "handoff")
		}, false, []int{6, 2}, 6},
		{"one of them again", func(plan, round int, s string) bool { return plan < 2 && round == 1 && s == "spin" }, false, []int{6, 1, 1}, 6},
		{"always one", func(_, round int, s string) bool { return round == 1 && s == "spin" }, false, []int{6, 1, 1, 1, 1, 1, 1}, 5},
		{"one lock always", func(_, _ int, s string) bool { return s == "spin" }, false, []int{6}, 6},
		{"one that was left out", func(_, round int, s string) bool { return s == "spin" && round == 1 }, true, []int{6}, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var rounds []int
			b := Bench{Run: func(_ context.Context, plan lockbench.Plan) (*results.Report, error) {
				report := pretend(plan)
				if len(plan.Strategies) < 3 {
					return report, nil
				}
				for i := range report.Runs {
					if r := &report.Runs[i]; test.spoil(len(rounds), r.Round, r.Strategy) {
						r.Invalid = []string{"time accounting"}
					}
				}
				if test.left {
					report.LeftOut = []results.LeftOut{{Strategy: "spin", Why: "it failed"}}
				}
				rounds = append(rounds, plan.Rounds)
				return report, nil
			}}
			a, err := b.Answer(t.Context(), asked(nil))
			if err != nil || !slices.Equal(rounds, test.rounds) {
				t.Fatalf("%v: it measured %v rounds, want %v", err, rounds, test.rounds)
			}
			sound(t, a)
			sum := 0
			for _, n := range rounds[1:] {
				sum += n
			}
			if a.Repeated != sum {
				t.Errorf("it says that %d rounds were repeated, there were %d", a.Repeated, sum)
			}
			said := func(text string) bool {
				return slices.ContainsFunc(a.Notes, func(s Sentence) bool { return strings.Contains(s.Text, text) })
			}
			if said("Rounds that were repeated") != (sum > 0) || said("Ask again on a quieter machine") != (test.complete < 6) {
				t.Errorf("it says %+v", a.Notes)
			}
		})
	}
}
