//go:build !linux

package servers

// affinityOf is not known: no other system tells.
func affinityOf(int) []int { return nil }

func isServer(int, string) bool { return false }
