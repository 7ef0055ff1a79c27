package runner

import (
	"fmt"
	"math"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// fairRound warns of a window that is over before a lock could have served every client
// once, as far as that is known beforehand: "" if it is not. A round takes at least what
// the clients hold one after the other, on as many keys as there are and under as many
// permits as the most generous of the strategies has.
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
		if v.Info().Capacity == 0 { // as many as ask
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

// wholeSeconds rounds up, with room for what passes between two holders.
func wholeSeconds(d time.Duration) time.Duration {
	const spare = 1.1
	return time.Duration(math.Ceil(d.Seconds()*spare)) * time.Second
}
