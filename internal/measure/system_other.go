//go:build !linux

package measure

import "time"

// Affinity returns nil, because lockbench reads the CPUs of a process only on Linux.
func Affinity(int) []int { return nil }

// realTime returns the wall-clock time, because monotonic clocks may omit suspensions.
func realTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
