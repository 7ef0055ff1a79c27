package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/untrusted"
)

func (a *app) clean() *cobra.Command {
	redis := lockbench.StoreOptions{Address: "auto"}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what a killed lockbench left behind",
		Long: "Remove what a lockbench that was killed left behind: its containers and directories on this\n" +
			"machine and, with --redis, its keys on that server, a Redis or another store. What a running\n" +
			"one uses is left alone.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	registerServer(cmd.Flags(), &redis)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.input(cmd.Flags()).variables(cmd.Flags()).refuse(); err != nil {
			return err
		}
		swept, err := lockbench.Clean(cmd.Context(), redis)
		for _, what := range swept {
			if _, err := fmt.Fprintln(a.stdout, untrusted.Printable(what)); err != nil {
				return printed(err)
			}
		}
		if err == nil && len(swept) == 0 {
			_, err := fmt.Fprintln(a.stdout, "nothing to remove")
			return printed(err)
		}
		return err
	}
	return cmd
}
