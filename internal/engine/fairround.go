package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
)

// waiters returns the waiters of all clients, by client number.
func (r *run) waiters() []*measure.Waiter {
	var all []*measure.Waiter
	for _, c := range r.clients {
		all = append(all, c.waiter)
	}
	return all
}

// shortOfARound returns a label if the window was too short for every client to have one
// acquisition; the label names a window that is long enough. It returns "" if starvation
// can be decided, and where clients are only slots.
func (r *run) shortOfARound(result *results.Run) string {
	if r.arrivals != nil || len(r.Workload.Stages) > 0 || result.WindowNS == 0 {
		return ""
	}
	part, short := r.recorder.ShortOfARound(r.audit, r.waiters())
	if !short {
		return ""
	}
	label := fmt.Sprintf("window too short for one fair round: %d acquisitions for %d clients", result.Speed.Served, r.Workload.Clients)
	if part == 0 {
		return label
	}
	return label + ", --duration " + roomy(time.Duration(float64(result.WindowNS)/part)).String() + " is not"
}

// roomy returns a window somewhat longer than the least sufficient one, in whole seconds.
func roomy(least time.Duration) time.Duration {
	const spare = 1.1
	return time.Duration(math.Ceil(least.Seconds()*spare)) * time.Second
}
