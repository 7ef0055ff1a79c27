// Package extent determines how much of the conformance suite runs. Without LOCKBENCH_CONFORM, only one variant of each
// kind of lock runs, with few rounds. The value "variants" (make others, make race) adds the variants that have
// separate code. The value "all" (make soak) runs every variant, also on clusters and with other clocks.
package extent

import "os"

// More reports whether LOCKBENCH_CONFORM requests more than the default.
func More() bool { return os.Getenv("LOCKBENCH_CONFORM") != "" }

// Thorough reports whether LOCKBENCH_CONFORM requests every variant, with additional runs on clusters and with other
// clocks.
func Thorough() bool { return os.Getenv("LOCKBENCH_CONFORM") == "all" }

// Rounds returns how often a check repeats a step that fails only sometimes. By default it returns six, which suffices
// to find every planted fault (docs/evidence/DETECTION.md). If LOCKBENCH_CONFORM is set, it returns 0, which means the
// suite's default.
func Rounds() int {
	if More() {
		return 0
	}
	return 6
}

// Chosen returns the variants to run: only the first one by default, and all of them if LOCKBENCH_CONFORM is set.
func Chosen[T any](variants []T) []T {
	if More() {
		return variants
	}
	return variants[:1]
}
