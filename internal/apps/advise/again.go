package advise

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/strategies"
)

// again returns a plan that repeats rounds whose measurements cannot be trusted: at most this many, and
// only as many as there is time for; false if none. Every round measures all locks, so that they
// are compared within one round.
func (q Question) again(reports []*results.Report, most int, begun time.Time) (lockbench.Plan, bool) {
	plan := q.locks()
	plan.Rounds = min(most, q.missing(reports))
	out := leftOut(reports)
	plan.Strategies = slices.DeleteFunc(plan.Strategies, func(v strategies.Variant) bool { return out[v.Name()] })
	if len(plan.Strategies) == 0 {
		return plan, false
	}
	for plan.Rounds > 0 && q.sized && time.Since(begun)+plan.Expected()+q.later() > allowed {
		plan.Rounds--
	}
	return plan, plan.Rounds > 0
}

// later is the approximate time of the experiments after the matrix.
func (q Question) later() time.Duration { return q.Expected() - q.locks().Expected() }

// missing returns how many more rounds are needed in which every lock's run can be trusted. It ignores
// locks that failed, or without any run that can be trusted.
func (q Question) missing(reports []*results.Report) int {
	out := leftOut(reports)
	count := map[int]int{}
	locks := 0
	for _, s := range results.Summarise(reports) {
		good := slices.DeleteFunc(slices.Clone(s.Runs), func(r results.Run) bool { return !r.Complete() })
		if out[s.Name] || len(good) == 0 {
			continue
		}
		locks++
		for _, run := range good {
			count[run.Round]++
		}
	}
	have := 0
	for _, n := range count {
		if n == locks {
			have++
		}
	}
	if locks == 0 {
		return 0
	}
	return q.Rounds - have
}

// leftOut returns the locks that were left out during the runs.
func leftOut(reports []*results.Report) map[string]bool {
	out := map[string]bool{}
	for _, r := range reports {
		for _, left := range r.LeftOut {
			out[left.Strategy] = true
		}
	}
	return out
}

// repeated says how many rounds were repeated, and how many are still missing.
func (q Question) repeated(m measured) []Sentence {
	var all []Sentence
	say := func(n int, text string) {
		value := &results.Figure{Value: float64(n)}
		all = append(all, Sentence{Text: text, Evidence: []findings.Evidence{{Metric: "rounds", Value: value}}})
	}
	if m.Repeated > 0 {
		say(m.Repeated, fmt.Sprintf("Rounds that were repeated, because a run was invalid: %d.", m.Repeated))
	}
	if lacking := q.missing(m.Locks); lacking > 0 {
		say(q.Rounds-lacking, fmt.Sprintf("Rounds with valid runs alone: %d of %d. Ask again on a quieter machine.", q.Rounds-lacking, q.Rounds))
	}
	return all
}
