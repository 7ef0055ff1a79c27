package driver

import (
	"path/filepath"
	"slices"
)

// KillMarked kills the processes that have a variable, NAME=VALUE, in their environment, again and again until there is
// none or closePatience has passed. It does not find a process that has removed or overwritten its environment.
func KillMarked(variable string) { killMarked(variable) }

// IsMarked reports whether any process has a variable, NAME=VALUE, in its environment.
func IsMarked(variable string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	return slices.ContainsFunc(all, func(file string) bool { return hasLine(file, variable) })
}
