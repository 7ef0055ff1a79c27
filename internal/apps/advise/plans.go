package advise

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// measured holds the reports for the advice; nil means not measured.
type measured struct {
	Locks  *results.Report // the candidates under the given contention
	Update *results.Report // a value in Redis, incremented by one command and under the chosen lock
}

// locks returns the plan of the matrix.
func (q Question) locks() lockbench.Plan {
	candidates, _ := q.candidates()
	return lockbench.Plan{Strategies: candidates, Workload: q.Workload, Rounds: q.Rounds, Redis: q.Redis}
}

// update returns a plan that compares one command with a lock around a read and a write of the same value,
// as fast as clients can; false without that command.
func (q Question) update(lock strategies.Variant) (lockbench.Plan, bool) {
	atomic, err := strategies.NewVariant("atomic", nil)
	if err != nil || q.Workload.Work != workloads.WorkCounter {
		return lockbench.Plan{}, false
	}
	w := q.Workload
	w.Work, w.Hold, w.Think, w.Rate, w.Timeout = workloads.WorkCounter, workloads.Dist{}, workloads.Dist{}, 0, nil
	window, warmup := fair(w)
	w.Duration, w.Warmup = min(w.Duration, workloads.Duration(window)), min(w.Warmup, workloads.Duration(warmup))
	both := []strategies.Variant{atomic, lock}
	return lockbench.Plan{Strategies: both, Workload: w, Rounds: min(q.Rounds, fewRounds), Redis: q.Redis}, true
}

// fewRounds is enough for large differences.
const fewRounds = 3

// Plans returns the plans as far as they are known beforehand: the first candidate stands for the lock that
// will be chosen.
func (q Question) Plans() []lockbench.Plan {
	plans := []lockbench.Plan{q.locks()}
	if candidates := plans[0].Strategies; len(candidates) > 0 {
		if plan, ok := q.update(candidates[0]); ok {
			plans = append(plans, plan)
		}
	}
	return plans
}

// Expected is the approximate time of all plans.
func (q Question) Expected() time.Duration {
	var total time.Duration
	for _, plan := range q.Plans() {
		total += plan.Expected()
	}
	return total
}

// Commands returns the shell commands that repeat plans. They contain no secret: if the address of Redis
// has one, a comment says where to put the address.
func Commands(plans ...lockbench.Plan) []string {
	var all []string
	for _, p := range plans {
		servers, remark := where(p.Redis)
		line := slices.Concat(
			[]string{"lockbench", "--strategy", names(p.Strategies)},
			workloads.Arguments([]workloads.Point{{Workload: p.Workload}}),
			[]string{"--runs", strconv.Itoa(p.Rounds)}, servers, []string{"--no-baselines"},
		)
		for i, word := range line {
			line[i] = words.Quoted(word)
		}
		all = append(all, strings.Join(line, " ")+remark)
	}
	return all
}

// where returns the options that select the Redis, without a secret, and a comment on what is then
// missing.
func where(r lockbench.StoreOptions) (options []string, remark string) {
	switch secret := strings.Contains(r.Address, "@") || strings.Contains(r.Address, "password"); {
	case secret:
		remark = "  # with the address of Redis, which has a secret, in LOCKBENCH_REDIS"
	case r.Address != "" && r.Address != "auto":
		options = append(options, "--redis", r.Address)
	}
	for _, option := range [][2]string{{"--topology", r.Topology}, {"--ca-file", r.CAFile}, {"--image", r.Image}} {
		if option[1] != "" {
			options = append(options, option[0], option[1])
		}
	}
	return options, remark
}
