package command

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
)

// idle names the flags of a run that have no effect.
func (f *flags) idle(plan lockbench.Plan) []string {
	lines := append(f.workload.Idle(), idleRedis(f.given.set, plan.Redis)...)
	remote := slices.ContainsFunc(plan.Strategies, func(v strategies.Variant) bool { return engine.NeedsStore(v.Info(), plan.Workload) })
	if f.given.set.Changed("allow-faults-on-my-server") && len(plan.Workload.Faults) == 0 {
		lines = append(lines, "--allow-faults-on-my-server has no effect without --fault")
	}
	if f.given.set.Changed("redis") && !remote {
		lines = append(lines, "--redis has no effect: no strategy talks to Redis")
	}
	return f.given.renamed(lines)
}

// idleRedis names the flags about Redis that have no effect.
func idleRedis(set *pflag.FlagSet, r lockbench.StoreOptions) []string {
	started := store.Options{Address: r.Address}.Started()
	var lines []string
	if set.Changed("image") && (!started || r.Address == "process") {
		lines = append(lines, "--image has no effect on a Redis that is no container of lockbench's (--redis)")
	}
	if set.Changed("durability") && !started {
		lines = append(lines, "--durability has no effect on a Redis that lockbench did not start (--redis)")
	}
	if set.Changed("ca-file") && started {
		lines = append(lines, "--ca-file has no effect on a Redis that lockbench starts itself (--redis)")
	}
	return lines
}

func (a *app) warn(lines ...string) {
	for _, line := range lines {
		a.say("warning: %s", line)
	}
}

// renamed replaces the flag at the start of each line by the place its value came from.
func (s *source) renamed(lines []string) []string {
	for i, line := range lines {
		lines[i] = s.origins.Rename(errors.New(line)).Error()
	}
	return lines
}
