package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/doctor"
)

func (a *app) doctor() *cobra.Command {
	var redis lockbench.StoreOptions
	out := applicationOutputs[*doctor.Document](nil)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a server can be measured, and what would distort the figures",
		Long: "Look at a server and at this machine, in a few seconds: is it reachable, what is it, which rights\n" +
			"does the user have, what are the limits, what does it count, does it evict keys or write snapshots,\n" +
			"and how noisy is this machine. Every strategy acquires and releases once. What is wrong comes with\n" +
			"what to do about it.\n" +
			"It ends with 104 if something cannot be measured, with 113 if the server cannot be reached.",
		Example: "  lockbench doctor -u redis://redis.example:6379\n" +
			"  LOCKBENCH_REDIS=rediss://user:secret@redis.example:6380 lockbench doctor -o table -o json=doctor.json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	registerServer(flags, &redis)
	flags.StringVar(&redis.Topology, "topology", "",
		"`form`: single, nodes:N, replicas:N or cluster:N, of other stores NAME:N: what the addresses must be")
	out.register(flags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := a.input(flags).variables(flags)
		if err := given.refuse(doctor.Validate(redis), check(out.all(), redis.CAFile)); err != nil {
			return err
		}
		found, err := doctor.Run(cmd.Context(), redis)
		if err := saveAll(a, out.all(), found); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		if bad := found.In(doctor.Trouble); len(bad) > 0 {
			return &exit{ExitConfig, fmt.Errorf("something cannot be measured: %s", strings.Join(bad, ", "))}
		}
		return nil
	}
	return cmd
}
