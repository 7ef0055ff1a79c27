//go:build !linux

package measure

import "time"

// Affinity returns nil: only Linux is supported.
func Affinity(int) []int { return nil }

// realTime is the time of day: monotonic clocks may leave suspensions out.
func realTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
