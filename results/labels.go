package results

import (
	"slices"
	"strings"
)

// Labels of runs, or their prefixes, that the code tests for.
const (
	GeneratorBound = "generator-bound" // the machine was busy with lockbench itself
	BusyMachine    = "busy machine"    // the machine was busy with other processes
	OtherCPU       = "other CPU "      // followed by the share of all cores that neither lockbench nor Redis used
	Stolen         = "steal "          // followed by the share that other machines on the same hardware took
	Overloaded     = "overloaded: "    // an open loop's arrivals found all clients waiting
	// OutlivedLease says that a lock was held for longer than its TTL and nothing renewed it.
	OutlivedLease = "held for longer than the lease"
)

// SetsThePace says whether a label means that the machine, not the lock, limited the speed.
func SetsThePace(label string) bool {
	return label == GeneratorBound || label == BusyMachine || strings.HasPrefix(label, OtherCPU) || strings.HasPrefix(label, Stolen)
}

// MachineBound says whether the labels mean that the machine, not the lock, limited the speed.
func (r Run) MachineBound() bool { return slices.ContainsFunc(r.Labels, SetsThePace) }

// Overloaded says that an open loop's arrivals came faster than the lock served them.
func (r Run) Overloaded() bool {
	return slices.ContainsFunc(r.Labels, func(label string) bool { return strings.HasPrefix(label, Overloaded) })
}
