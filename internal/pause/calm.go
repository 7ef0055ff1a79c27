package pause

import (
	"fmt"
	"time"
)

// Calmly calls play with a duration. play returns a fault, or "" if there is none. If standstill measured that the
// machine stood still for at least a fifth of the duration, this may have caused the fault: Calmly then records the
// fault as spoilt and plays again with twice the duration, at most attempts times. A fault that it returns had no such
// cause.
func Calmly(
	attempts int, length time.Duration, standstill func(do func()) time.Duration, play func(time.Duration) string,
) (fault string, spoilt []string) {
	for ; len(spoilt) < attempts; length *= 2 {
		longest := standstill(func() { fault = play(length) })
		if fault == "" || longest < length/5 {
			return fault, spoilt
		}
		spoilt = append(spoilt, fmt.Sprintf("%s, with a TTL of %v, but the machine stood still for %v", fault, length,
			longest))
	}
	return "", spoilt
}
