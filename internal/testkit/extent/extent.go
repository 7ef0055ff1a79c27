// Package extent describes how much of the conformance suite is run. Without LOCKBENCH_CONFORM it is one variant of
// each kind of lock, with few rounds; "variants" (make others, make race) adds those with code of their own, and
// "all" (make soak) every variant, also on clusters and with other clocks.
package extent

import "os"

// More reports whether more is tried than every day.
func More() bool { return os.Getenv("LOCKBENCH_CONFORM") != "" }

// Thorough reports whether everything is tried.
func Thorough() bool { return os.Getenv("LOCKBENCH_CONFORM") == "all" }

// Rounds returns how often a check repeats what goes wrong only now and then: six times, in which the suite finds
// every fault that was planted (docs/evidence/DETECTION.md), or as often as it does for users.
func Rounds() int {
	if More() {
		return 0
	}
	return 6
}

// Chosen returns which of several variants are tried: the first, or all.
func Chosen[T any](variants []T) []T {
	if More() {
		return variants
	}
	return variants[:1]
}
