package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/apps/advise"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// complete registers the shell completions of a measuring command's flags. formats are
// those that it writes.
func complete(cmd *cobra.Command, formats []string) {
	const bare = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	offers := map[string]cobra.CompletionFunc{
		"strategy": func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			// A list is completed at its last name.
			before := typed[:strings.LastIndex(typed, ",")+1]
			var offered []string
			for _, name := range append(strategyNames(), "all") {
				offered = append(offered, before+name)
			}
			return offered, bare
		},
		"output": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return formats, bare
		},
		"for":      fixed(string(advise.Efficiency), string(advise.Correctness)),
		"redis":    fixed("auto", "container", "process", "redis://", "rediss://"),
		"work":     fixed(string(workloads.WorkNone), string(workloads.WorkSpin), string(workloads.WorkCounter)),
		"fence":    fixed(string(workloads.FenceAll), string(workloads.FenceWrites), string(workloads.FenceOff)),
		"topology": fixed("single", "nodes:", "replicas:", "cluster:"),
		"arrivals": fixed(string(workloads.ArrivalsPoisson), string(workloads.ArrivalsConstant)),
		"workload": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return presets.Names(), cobra.ShellCompDirectiveDefault
		},
		"ca-file": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return nil, 0 },
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		offer, known := offers[flag.Name]
		if !known {
			offer = cobra.NoFileCompletions
		}
		// It fails for a flag that does not exist or has an offer already.
		if err := cmd.RegisterFlagCompletionFunc(flag.Name, offer); err != nil {
			panic(err)
		}
	})
}

func fixed(words ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
