package command

import "time"

// OneStop is the time after the first signal during which further signals count as duplicates of it.
const OneStop = oneStop

// SetAfterTerm changes how long a command may take to end after SIGTERM.
func SetAfterTerm(limit time.Duration) { afterTerm = limit }
