package driver

import (
	"path/filepath"
	"slices"
)

// KillMarked kills all processes whose environment contains a variable, given as NAME=VALUE. It repeats the search
// until it finds none or closePatience has passed. It does not find a process that has removed or overwritten its
// environment.
func KillMarked(variable string) { killMarked(variable) }

// IsMarked reports whether the environment of any process contains a variable, given as NAME=VALUE.
func IsMarked(variable string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	return slices.ContainsFunc(all, func(file string) bool { return hasLine(file, variable) })
}
