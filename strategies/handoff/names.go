package handoff

import (
	"strings"
)

// suffix ends the names of all locks.
const suffix = ":handoff"

// base begins the names of the channels and the heartbeats of processes: the process
// follows.
func base(prefix string) string { return prefix + "handoff:" }

// processOf is the part of an id that names its process: owner.Names makes ids of a
// UUID and a number.
func processOf(id string) string {
	process, _, _ := strings.Cut(id, ":")
	return process
}
