package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return printed(err)
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("lockbench %s (%s, %s/%s)", lockbench.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
