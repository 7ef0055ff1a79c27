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
	var outputs []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether a server can be measured, and what would spoil the figures",
		Long: "Look at a server and at this machine, in a few seconds: is it reachable, what is it, which topology, which rights does\n" +
			"the user have, what are the limits, what does INFO tell, is the clock right, what is written to disk, and how noisy is\n" +
			"this machine. Every strategy acquires and releases once. What is wrong comes with what to do about it.\n" +
			"It ends with 104 if something cannot be measured, with 113 if the server cannot be reached.",
		Example:            "  lockbench doctor -u redis://redis.example:6379\n  LOCKBENCH_REDIS=rediss://user:secret@redis.example:6380 lockbench doctor -o table -o json=doctor.json",
		Args:               cobra.NoArgs,
		ValidArgsFunction:  cobra.NoFileCompletions,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	registerServer(flags, &redis)
	flags.Var(textValue("form", &redis.Topology), "topology", "single, nodes:N, replicas:N or cluster:N, of other stores NAME:N: what must be at the addresses")
	flags.VarP(listValue("format", &outputs), "output", "o", "table or json, with =FILE to write a file; repeatable (default table)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := source{set: flags}
		given.readEnvironment()
		formatted, err := parseOutputs(outputs, "table", doctorFormats())
		if faults := a.problems(given, err, doctor.Validate(redis), clashes(reads("--ca-file", redis.CAFile), places(formatted))); faults != nil {
			return faults
		}
		found, err := doctor.Run(cmd.Context(), redis)
		if err := saveAll(a, formatted, found); err != nil {
			return &exit{ExitFailure, err}
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

func doctorFormats() formats[*doctor.Document] {
	return formats[*doctor.Document]{one: map[string]writer[*doctor.Document]{
		"table": doctor.WriteTable,
		"json":  plain(doctor.WriteJSON),
	}}
}
