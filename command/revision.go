package command

import (
	"cmp"
	"os"

	"github.com/lockbench/lockbench/results"
)

// revision fills in what the build does not know of where it comes from: GitHub
// and GitLab tell their jobs.
func revision(tool *results.Tool) {
	tool.Commit = cmp.Or(tool.Commit, os.Getenv("GITHUB_SHA"), os.Getenv("CI_COMMIT_SHA"))
	tool.Branch = cmp.Or(tool.Branch, os.Getenv("GITHUB_HEAD_REF"), os.Getenv("GITHUB_REF_NAME"), os.Getenv("CI_COMMIT_REF_NAME"))
}
