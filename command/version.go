package command

import (
	"cmp"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
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

// revision sets commit and branch from the variables of GitHub's and GitLab's jobs, if
// the build does not know them.
func revision(tool *results.Tool) {
	tool.Commit = cmp.Or(tool.Commit, os.Getenv("GITHUB_SHA"), os.Getenv("CI_COMMIT_SHA"))
	tool.Branch = cmp.Or(tool.Branch, os.Getenv("GITHUB_HEAD_REF"), os.Getenv("GITHUB_REF_NAME"), os.Getenv("CI_COMMIT_REF_NAME"))
}
