// Package extent determines how much of the conformance suite runs. Without LOCKBENCH_CONFORM it is one variant of each
// kind of lock, with few rounds. "variants" (make others, make race) adds the variants that have separate code. "all"
// (make soak) runs every variant, also on clusters and with other clocks.
package extent

import "os"

// More reports whether LOCKBENCH_CONFORM requests more than the default.
func More() bool { return os.Getenv("LOCKBENCH_CONFORM") != "" }

// Thorough reports whether everything must run.
func Thorough() bool { return os.Getenv("LOCKBENCH_CONFORM") == "all" }

// Rounds returns how often a check repeats a step that fails only sometimes: six times, in which the suite finds every
// planted fault (docs/evidence/DETECTION.md), or as often as for users.
func Rounds() int {
	if More() {
		return 0
	}
	return 6
}

// Chosen returns the variants to run: only the first one by default, otherwise all.
func Chosen[T any](variants []T) []T {
	if More() {
		return variants
	}
	return variants[:1]
}
