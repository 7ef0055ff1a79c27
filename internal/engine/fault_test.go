package engine_test

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
)

// An engine that takes every release for a fifth of its hold too early shortens the holds
// and lengthens handoffs and releases by as much: the time accounts balance, and the queue is
// explained. Only the server's clock can tell.
//
// A busy machine keeps clients from running just before or after they ask for the time, which
// makes all holds longer by a few percent; the honest ones, measured beside the others, tell.
func TestShortHoldsAreFoundByTheServersClock(t *testing.T) {
	const share, tellApart = 5, 10.0 // of a hold that is missing; percent, half of it
	var all sync.WaitGroup
	var honest, short float64
	var verdict selfcheck.Verdict
	all.Go(func() { honest, _ = byTheServersClock(t, nil) })
	all.Go(func() {
		short, verdict = byTheServersClock(t, func(job engine.Job) engine.Job {
			return job.Misreading(func(granted, released int64) int64 { return released - (released-granted)/share })
		})
	})
	all.Wait()
	if !(honest > -tellApart/2) {
		t.Errorf("honest holds: %.2f %%", honest)
	}
	if !(short-honest < -tellApart) {
		t.Errorf("holds 20 %% short: %.2f %%, honest ones %.2f %%", short, honest)
	}
	if verdict != selfcheck.Fail {
		t.Errorf("holds 20 %% short: %.2f %%, the check's verdict is %s", short, verdict)
	}
}

// byTheServersClock is by how much holds are recorded longer than the server's clock
// says, in percent, and the check's verdict.
func byTheServersClock(t *testing.T, change func(engine.Job) engine.Job) (longer float64, verdict selfcheck.Verdict) {
	found, err := selfcheck.Run(t.Context(), selfcheck.Options{
		Redis: lockbench.StoreOptions{Address: servers.Quickest()}, Only: []string{"queueing"}, Change: change,
		Effort: selfcheck.Effort{Queues: []string{"local"}, Customers: 400, Loads: []float64{0.7}, Window: time.Second},
	})
	if err != nil {
		t.Error(err)
		return math.NaN(), ""
	}
	for _, m := range found.Checks[0].Measured {
		if strings.Contains(m.Name, "TIME") && m.Value != nil {
			return *m.Value, found.Checks[0].Verdict
		}
	}
	t.Errorf("holds are not compared with the server's TIME: %+v", found.Checks[0])
	return math.NaN(), ""
}
