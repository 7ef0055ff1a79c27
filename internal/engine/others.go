package engine

import (
	"fmt"

	"github.com/lockbench/lockbench/results"
)

const (
	// otherCPULimit is the share of all cores, in percent, above which other processes get a label.
	otherCPULimit = 10.0
	// stealLimit is the same for the hypervisor. It is lower: the hypervisor takes whole
	// milliseconds, during which a holder does not run.
	stealLimit = 2.0
)

// others fills in what processes other than lockbench and its Redis used of this machine.
func (r *run) others(result *results.Run, from, to snapshot) {
	g := &result.Generator
	g.Steal = to.health.StolenSince(from.health)
	locks, known := 0.0, true
	if r.remote() && r.Target.Local() {
		locks, known = spent(from.server, to.server)
	}
	counters := 0.0
	if r.counted() && r.Counters.Local() && known {
		counters, known = spent(from.apart, to.apart)
	}
	if known { // else all of it may be Redis's
		g.OtherCPU = to.health.OtherCPUSince(from.health, locks+counters)
	}
}

// spent returns a server's CPU time between two readings in seconds; false if it is not known, such as
// over a restart of Redis, at which it begins again at 0.
func spent(from, to *results.Reading) (float64, bool) {
	if from == nil || to == nil || from.CPU == nil || to.CPU == nil || *to.CPU < *from.CPU {
		return 0, false
	}
	return *to.CPU - *from.CPU, true
}

// othersLabels returns labels that say how much other processes used.
func othersLabels(g results.Generator) []string {
	var labels []string
	if g.OtherCPU != nil && *g.OtherCPU > otherCPULimit {
		labels = append(labels, fmt.Sprintf("%s%.0f%%", results.OtherCPU, *g.OtherCPU))
	}
	if g.Steal != nil && *g.Steal > stealLimit {
		labels = append(labels, fmt.Sprintf("%s%.1f%%", results.Stolen, *g.Steal))
	}
	return labels
}
