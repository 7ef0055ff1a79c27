package command

import "time"

// SetAfterTerm changes how long a command may take to end after SIGTERM.
func SetAfterTerm(limit time.Duration) { afterTerm = limit }
