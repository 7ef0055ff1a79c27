package pause

import (
	"fmt"
	"time"
)

// Calmly plays with a time. play returns a fault, "" for none. If the machine stood still for a fifth of the time
// meanwhile, as standstill measures, that may have been the cause: Calmly notes the fault as spoilt and plays again
// with twice the time, as often as attempts says. What it returns as the fault had no such cause.
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
