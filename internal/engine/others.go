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
	redis := 0.0
	if r.remote() && r.Target.Local() {
		if from.server == nil || to.server == nil || from.server.CPU == nil || to.server.CPU == nil {
			return // all of it may be Redis's
		}
		if redis = *to.server.CPU - *from.server.CPU; redis < 0 { // Redis was restarted, and its CPU time began again at 0
			return
		}
	}
	g.OtherCPU = to.health.OtherCPUSince(from.health, redis)
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
