//go:build !linux

package measure

// Affinity is not known: no other system tells.
func Affinity(int) []int { return nil }
