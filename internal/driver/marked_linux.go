package driver

// KillMarked kills the processes that have a variable, NAME=VALUE, in their environment, until there is none or one
// does not end in time. It does not find one that has removed or overwritten its environment.
func KillMarked(variable string) { killMarked(variable) }
