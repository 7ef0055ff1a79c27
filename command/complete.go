package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/apps/advise"
	"github.com/lockbench/lockbench/workloads"
)

// complete registers the shell completions of a measuring command's flags. formats are
// those that it writes.
func complete(cmd *cobra.Command, formats []string) {
	offers := map[string][]string{
		"output":   formats,
		"for":      {string(advise.Efficiency), string(advise.Correctness)},
		"redis":    {"auto", "container", "process", "redis://", "rediss://"},
		"topology": {"single", "nodes:", "replicas:", "cluster:"},
	}
	for _, field := range workloads.Fields() {
		offers[field.Name] = field.Words
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		offer := cobra.FixedCompletions(offers[flag.Name],
			cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
		switch flag.Name {
		case "strategy":
			offer = completeStrategies
		case "workload":
			offer = cobra.FixedCompletions(workloads.Presets(), cobra.ShellCompDirectiveDefault)
		case "ca-file":
			offer = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		}
		// It fails for a flag that does not exist or has an offer already.
		if err := cmd.RegisterFlagCompletionFunc(flag.Name, offer); err != nil {
			panic(err)
		}
	})
}

// completeStrategies completes a list of strategies at its last name.
func completeStrategies(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var offered []string
	for _, name := range append(strategyNames(), "all") {
		offered = append(offered, before+name)
	}
	return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
