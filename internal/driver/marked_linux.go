package driver

import (
	"path/filepath"
	"slices"
)

// KillMarked kills the processes that have a variable, NAME=VALUE, in their environment, until there is none or one
// does not end in time. It does not find one that has removed or overwritten its environment.
func KillMarked(variable string) { killMarked(variable) }

// IsMarked reports whether a process has a variable, NAME=VALUE, in its environment.
func IsMarked(variable string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	return slices.ContainsFunc(all, func(file string) bool { return hasLine(file, variable) })
}
