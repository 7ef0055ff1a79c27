package runner

import (
	"fmt"
	"math"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// fairRound returns a warning if the window is too short for a lock to serve every client once,
// as far as that is known beforehand; else "". A round takes at least the sum of the clients'
// holds, divided by the number of keys and by the largest number of permits of a strategy.
func (p Plan) fairRound(w workloads.Spec) string {
	if w.Clients < 2 || w.Rate > 0 || w.Coalesce || w.Burst > 0 || len(w.Stages) > 0 {
		return ""
	}
	if w.Iterations > 0 {
		if w.Iterations < int64(w.Clients) {
			return fmt.Sprintf("--iterations %d are too few for one fair round of %d clients; from %d on it can be told who starves", w.Iterations, w.Clients, 2*w.Clients)
		}
		return ""
	}
	permits := 1
	for _, v := range p.Strategies {
		if v.Info().Capacity == 0 { // any number of permits
			return ""
		}
		permits = max(permits, v.Info().Capacity)
	}
	round := time.Duration(float64(w.Clients) * float64(w.Hold.Mean()) / float64(w.Keys*permits))
	if round <= time.Duration(w.Duration) {
		return ""
	}
	return fmt.Sprintf("--duration %v is too short for one fair round: %d clients that hold for %v one after the other take %v; from --duration %v on it can be told who starves",
		w.Duration, w.Clients, w.Hold, round.Round(time.Millisecond), wholeSeconds(2*round))
}

// wholeSeconds rounds up and adds room for the time between two holders.
func wholeSeconds(d time.Duration) time.Duration {
	const spare = 1.1
	return time.Duration(math.Ceil(d.Seconds()*spare)) * time.Second
}
