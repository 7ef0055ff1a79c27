package command

import (
	"cmp"
	"os"

	"github.com/lockbench/lockbench/results"
)

// revision sets commit and branch from the variables of GitHub's and GitLab's jobs, if
// the build does not know them.
func revision(tool *results.Tool) {
	tool.Commit = cmp.Or(tool.Commit, os.Getenv("GITHUB_SHA"), os.Getenv("CI_COMMIT_SHA"))
	tool.Branch = cmp.Or(tool.Branch, os.Getenv("GITHUB_HEAD_REF"), os.Getenv("GITHUB_REF_NAME"), os.Getenv("CI_COMMIT_REF_NAME"))
}
