package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/doctor"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func (a *app) doctor() *cobra.Command {
	var at lockbench.StoreOptions
	var named []string
	out := applicationOutputs[*doctor.Document](nil)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a server is ready for a run",
		Long: "Print the preflight of a run, in a few seconds: is the server reachable, what is it, how many\n" +
			"connections does it take, which rights does the user lack, which figures will be unknown, does it\n" +
			"evict keys or write snapshots. Every strategy acquires and releases once. What is wrong comes with\n" +
			"what to do about it. A run begins with the same, and does not measure where something is missing.\n" +
			"It ends with 104 if something cannot be measured, with 113 if the server cannot be reached.",
		Example: "  lockbench doctor -u redis://redis.example:6379\n" +
			"  lockbench doctor -u redis://redis.example:6379 -s spin\n" +
			"  LOCKBENCH_REDIS=rediss://user:secret@redis.example:6380 \\\n    lockbench doctor -o table -o json=doctor.json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	registerServer(flags, &at)
	flags.StringVar(&at.Topology, "topology", "",
		"`form`: single, nodes:N, replicas:N or cluster:N, of other stores NAME:N: what the addresses must be")
	flags.StringArrayVarP(&named, "strategy", "s", nil, "`list` of strategies to try, as of a run; repeatable (default "+
		"all that lock there)")
	out.register(flags)
	complete(cmd, out.names())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := a.input(flags).variables(flags)
		known, notes := recognised(named, true)
		var variants []strategies.Variant
		var unknown error
		if len(named) > 0 {
			variants, unknown = driver.Parse(driver.Asked(cmd.Context()), known...)
		}
		plan, wrong := examined(at, variants)
		if err := given.refuse(prefixed("strategy", unknown), wrong, check(out.all(false), at.CAFile)); err != nil {
			return err
		}
		for _, note := range notes {
			a.say("%s", note)
		}
		found, err := doctor.Run(cmd.Context(), plan)
		if err := saveAll(a, out.all(false), found, false); err != nil {
			return err
		}
		if bad := found.In(results.Trouble); err == nil && len(bad) > 0 {
			err = &exit{ExitConfig, fmt.Errorf("something cannot be measured: %s", strings.Join(bad, ", "))}
		}
		return err
	}
	return cmd
}

// examined returns the plan of a run on a user's server with these strategies, or with all that lock in its store.
func examined(at lockbench.StoreOptions, variants []strategies.Variant) (plan lockbench.Plan, err error) {
	options := store.Options{Address: at.Address}
	switch {
	case at.Address == "":
		return plan, errors.New("--redis: give the address of the server to look at")
	case options.Started():
		return plan, errors.New("--redis must be the address of a server: one that lockbench starts itself is well")
	}
	name, err := store.At(at.Address)
	if err != nil {
		return plan, nil //nolint:nilerr // the flag has its own errors
	}
	storeOf := func(info strategies.Info) string { return cmp.Or(info.Store, store.Redis) }
	if len(variants) == 0 {
		for _, s := range strategies.All() {
			if s.Info.Nodes == 0 || s.Info.OnlyCounter || storeOf(s.Info) != name {
				continue
			}
			v, err := strategies.NewVariant(s.Info.Name, nil)
			if err != nil {
				return plan, fmt.Errorf("--strategy: %w", err)
			}
			variants = append(variants, v)
		}
	}
	for _, v := range variants {
		if info := v.Info(); info.Nodes > 0 && storeOf(info) != name {
			err = errors.Join(err, fmt.Errorf("--strategy: %s locks in %s, and %s is at that address", v.Name(),
				storeOf(info), name))
		}
	}
	if !slices.ContainsFunc(variants, func(v strategies.Variant) bool { return v.Info().Nodes > 0 }) {
		err = errors.New("--strategy: nothing that it names locks on a server")
	}
	if err != nil {
		return plan, err
	}
	plan = lockbench.Plan{Strategies: variants, Workload: workloads.Default(), Rounds: 1, Baselines: true}
	if plan.Redis = at; name != store.Redis {
		plan.Redis, plan.Stores = lockbench.StoreOptions{}, map[string]lockbench.StoreOptions{name: at}
	}
	return plan, plan.Validate()
}
