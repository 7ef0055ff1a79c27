package engine_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
)

// An engine that records every release too early, by a fifth of the hold, reports holds too short and handoffs too long
// by the same amount. Its time accounts still balance. The lock's own clock reveals the error.
func TestShortHoldsAreFoundByTheLocksClock(t *testing.T) {
	t.Parallel()
	early := func(granted, released int64) int64 { return released - (released-granted)/5 }
	for range 6 { // until the machine is quiet enough for holds of the requested length
		found, err := selfcheck.Run(t.Context(), selfcheck.Options{
			Redis: lockbench.StoreOptions{Address: redisserver.Quickest()}, Only: []string{"holds"},
			Change: func(job engine.Job) engine.Job { return job.Misreading(early) },
			Effort: selfcheck.Effort{Window: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		switch c := found.Checks[0]; c.Verdict {
		case selfcheck.Fail:
			return
		case selfcheck.Pass:
			t.Fatalf("holds a fifth too short: %+v", c.Measured)
		}
	}
	t.Error("every run was inconclusive")
}
