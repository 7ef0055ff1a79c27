package pause

import (
	"fmt"
	"time"
)

// Calmly calls play with a duration and returns the fault that play found, or "" for none. standstill measures for how
// long the machine stood still during play. If that was at least a fifth of the duration, the standstill may have
// caused the fault. Calmly then adds the fault to spoilt and calls play again with twice the duration. It calls play at
// most attempts times. If all faults are spoilt, it returns "".
func Calmly(
	attempts int, length time.Duration, standstill func(do func()) time.Duration, play func(time.Duration) string,
) (fault string, spoilt []string) {
	for ; len(spoilt) < attempts; length *= 2 {
		longest := standstill(func() { fault = play(length) })
		if fault == "" || longest < length/5 {
			return fault, spoilt
		}
		spoilt = append(spoilt, fmt.Sprintf("%s with a TTL of %v, but no process ran on the machine for %v", fault, length,
			longest))
	}
	return "", spoilt
}
