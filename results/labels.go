package results

import (
	"slices"
	"strings"
)

// Labels of runs, or their beginnings, that something depends on.
const (
	GeneratorBound = "generator-bound" // the machine was busy with lockbench itself
	BusyMachine    = "busy machine"    // it was busy with others
	OtherCPU       = "other CPU "      // ends with the share of all cores that went to neither lockbench nor Redis
	Stolen         = "steal "          // ends with that of other machines on the same hardware
	Overloaded     = "overloaded: "    // an open loop's arrivals found all clients waiting
	// OutlivedLease is of a lock that was held for longer than its TTL, and nobody renews it.
	OutlivedLease = "held for longer than the lease"
)

// formerOtherCPU is what older reports say for OtherCPU.
const formerOtherCPU = "foreign CPU "

// SetsThePace says of a label that the machine and not the lock did.
func SetsThePace(label string) bool {
	return label == GeneratorBound || label == BusyMachine || strings.HasPrefix(label, OtherCPU) || strings.HasPrefix(label, formerOtherCPU) || strings.HasPrefix(label, Stolen)
}

// MachineBound says that the machine and not the lock set the pace, as the labels
// tell.
func (r Run) MachineBound() bool { return slices.ContainsFunc(r.Labels, SetsThePace) }

// Overloaded says that an open loop's arrivals came faster than the lock served them.
func (r Run) Overloaded() bool {
	return slices.ContainsFunc(r.Labels, func(label string) bool { return strings.HasPrefix(label, Overloaded) })
}
