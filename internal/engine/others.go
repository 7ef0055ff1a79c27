package engine

import (
	"fmt"

	"github.com/lockbench/lockbench/results"
)

const (
	// otherCPULimit is what others may use of all cores, in percent, without a label.
	otherCPULimit = 10.0
	// stealLimit is what the hypervisor may take of all cores, in percent, without one. It
	// is lower: stolen time comes in pieces of milliseconds, in which a holder stands
	// still.
	stealLimit = 2.0
)

// others fills in what others than lockbench and its Redis used of this machine.
func (r *run) others(result *results.Run, from, to snapshot) {
	g := &result.Generator
	g.Steal = to.health.StolenSince(from.health)
	redis := 0.0
	if r.remote() && r.Target.Local() {
		if from.server == nil || to.server == nil || from.server.CPU == nil || to.server.CPU == nil {
			return // it may all be Redis's
		}
		if redis = *to.server.CPU - *from.server.CPU; redis < 0 { // it was restarted, and began anew
			return
		}
	}
	g.OtherCPU = to.health.OtherCPUSince(from.health, redis)
}

// othersLabels tell a reader that others took part, and how much.
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
