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

// An engine that takes every release for 5 % of its hold too early shortens the
// holds and lengthens handoffs and releases by as much: the books balance, and
// the queue is explained. Only the server's clock can tell.
//
// A machine that keeps clients from running just before or after they ask for the time
// makes all holds longer; the honest ones, measured beside the others, tell.
func TestShortHoldsAreFoundByTheServersClock(t *testing.T) {
	const tellApart, restless, unsure = 2.5, 1, 1.5 // percent; half of the fault, what a quiet machine adds, and what tries differ by
	var apart float64                               // of all tries that came to something, added up
	for try, tries := 1, 0.0; ; try++ {
		var all sync.WaitGroup
		var honest, short float64
		var verdict selfcheck.Verdict
		all.Go(func() { honest, _ = byTheServersClock(t, nil) })
		all.Go(func() {
			short, verdict = byTheServersClock(t, func(job engine.Job) engine.Job {
				return job.Misreading(func(granted, released int64) int64 { return released - (released-granted)/20 })
			})
		})
		all.Wait()
		t.Logf("honest holds are %.2f %% longer, short ones %.2f %%", honest, short)
		if math.Abs(honest) > restless && try < 6 && !t.Failed() {
			t.Log("the machine is too restless: once more")
			continue
		}
		tries++
		apart += short - honest
		if math.Abs(apart/tries+tellApart) < unsure && try < 6 {
			t.Log("that is between the two: once more")
			continue
		}
		if honest < -tellApart || math.IsNaN(honest) {
			t.Errorf("honest holds: %.2f %%", honest)
		}
		if math.IsNaN(short) || apart/tries >= -tellApart {
			t.Errorf("holds 5 %% short: %.2f %%, honest ones %.2f %%, %.2f %% apart in all", short, honest, apart/tries)
		}
		// What such a machine adds hides a part of the fault from the check, which knows no honest run.
		if verdict != selfcheck.Fail && (math.Abs(honest) <= restless || verdict == selfcheck.Pass) {
			t.Errorf("holds 5 %% short: %.2f %%, the check's verdict is %s", short, verdict)
		}
		return
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
