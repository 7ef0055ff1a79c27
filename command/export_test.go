package command

import "time"

// OneStop is the time in which further signals belong to the first one.
const OneStop = oneStop

// SetAfterTerm changes how long a command may take to end after SIGTERM.
func SetAfterTerm(limit time.Duration) { afterTerm = limit }
