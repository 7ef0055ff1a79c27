// Package extent says how much of the conformance suite is run. Without LOCKBENCH_CONFORM it is one
// variant of each strategy, with few rounds; "variants" adds those with code of their own, and "all" every
// variant, also on clusters and with other clocks.
package extent

import "os"

// Thorough says whether everything is tried.
func Thorough() bool { return os.Getenv("LOCKBENCH_CONFORM") == "all" }

// Rounds returns how often a check repeats what goes wrong only now and then: six times, in which the suite finds
// every fault that was planted (docs/evidence/DETECTION.md), or as often as it does for users.
func Rounds() int {
	if os.Getenv("LOCKBENCH_CONFORM") != "" {
		return 0
	}
	return 6
}

// Chosen returns which of several variants are tried: the first, or all.
func Chosen[T any](variants []T) []T {
	if Thorough() || os.Getenv("LOCKBENCH_CONFORM") == "variants" {
		return variants
	}
	return variants[:1]
}
