package command

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/apps/advise"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// completion prints the script by which a shell completes our command line.
func (a *app) completion() *cobra.Command {
	scripts := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print the script that completes command lines in a shell",
		Long:      "Print the script that completes command lines in a shell.",
		Example:   "  source <(lockbench completion bash)\n  lockbench completion fish > ~/.config/fish/completions/lockbench.fish",
		ValidArgs: slices.Sorted(maps.Keys(scripts)),
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printed(scripts[args[0]](cmd.Root(), cmd.OutOrStdout()))
		},
	}
}

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
