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
		Long: "Print in a few seconds the preflight of a run: whether the server is reachable, its version, its\n" +
			"limit of connections, missing rights of the user, figures that will be unknown, evictions and\n" +
			"snapshots. Every strategy acquires and releases once. Each problem comes with its solution. A run\n" +
			"begins with the same checks, and measures nothing if something is missing.\n\nThe exit code is 104 if\n" +
			"something cannot be measured, and 113 if the server cannot be reached.",
		Example: "  lockbench doctor -u redis://redis.example:6379\n" +
			"  lockbench doctor -u redis://redis.example:6379 -s spin\n" +
			"  LOCKBENCH_REDIS=rediss://user:secret@redis.example:6380 \\\n    lockbench doctor -o table -o json=doctor.json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	registerServer(flags, &at)
	flags.StringVar(&at.Topology, "topology", "",
		"`form` that the addresses must have: single, nodes:N, replicas:N or cluster:N; NAME:N for another store")
	flags.StringArrayVarP(&named, "strategy", "s", nil, "`list` of strategies to try, as for run; repeatable (default "+
		"all strategies of that store)")
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
			err = &exit{ExitConfig, fmt.Errorf("these checks found a problem that prevents runs: %s", strings.Join(bad, ", "))}
		}
		return err
	}
	return cmd
}

// examined returns a plan on the user's server with the given strategies. If none is given, the plan has every strategy
// whose locks are in this kind of store.
func examined(at lockbench.StoreOptions, variants []strategies.Variant) (plan lockbench.Plan, err error) {
	options := store.Options{Address: at.Address}
	switch {
	case at.Address == "":
		return plan, errors.New("--redis is needed: the address of the server, such as --redis HOST:PORT")
	case options.Started():
		return plan, fmt.Errorf("--redis must be the address of your server, not %q: a server that lockbench starts "+
			"needs no check", at.Address)
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
			err = errors.Join(err, fmt.Errorf("--strategy: %s keeps its locks in %s, but --redis is the address of %s", v.Name(),
				storeOf(info), name))
		}
	}
	if !slices.ContainsFunc(variants, func(v strategies.Variant) bool { return v.Info().Nodes > 0 }) {
		err = errors.New("--strategy: none of these locks uses a server: leave out --strategy to try all locks")
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
