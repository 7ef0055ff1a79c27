//go:build !linux

package measure

import "time"

// Affinity returns nil: only Linux is supported.
func Affinity(int) []int { return nil }

// realTime returns the wall-clock time, because monotonic clocks may omit suspensions.
func realTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
