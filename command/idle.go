package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/suggest"
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

// otherPrograms are variables that other programs of the project read.
var otherPrograms = []string{"LOCKBENCH_REDIS_IMAGE", "LOCKBENCH_REDIS_SERVER"}

// readEnvironment sets flags that were not given from their variables.
func (a *app) readEnvironment(given *source) {
	given.readEnvironment()
	warning, err := a.variables()
	if warning != "" {
		a.warn(warning)
	}
	given.misspelt = flatten(err)
}

// variables looks for LOCKBENCH_ variables that belong to no flag of any command. It
// returns an error for probable typos, and a warning about the others, which a platform
// may have set.
func (a *app) variables() (warning string, err error) {
	var names []string
	add := func(flag *pflag.Flag) { names = append(names, flag.Name) }
	root := a.root()
	root.Flags().VisitAll(add)
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(add)
	}
	for old := range former() {
		names = append(names, old)
	}
	var problems []error
	var unknown []string
	for _, entry := range slices.Sorted(slices.Values(os.Environ())) {
		variable, value, _ := strings.Cut(entry, "=")
		name, ours := strings.CutPrefix(variable, "LOCKBENCH_")
		name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if !ours || value == "" || slices.Contains(names, name) || slices.Contains(otherPrograms, variable) {
			continue
		}
		if meant := suggest.Typo(name, names); meant != "" {
			problems = append(problems, fmt.Errorf("%s: unknown variable, did you mean %s?", variable, variableOf(meant)))
		} else {
			unknown = append(unknown, variable)
		}
	}
	if len(unknown) > 0 {
		warning = strings.Join(unknown, ", ") + ": no flag is called like that, so that it has no effect"
	}
	return warning, errors.Join(problems...)
}
