//go:build !linux

package measure

// Affinity returns nil: only Linux is supported.
func Affinity(int) []int { return nil }
