package engine_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/selfcheck"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
)

// The engine reads each release too early, by a fifth of the hold. Holds then seem too short and handoffs too long by
// the same amount, so the time accounts still balance. The check holds must fail, because it compares the holds with
// the lock's own clock.
func TestLockClockRevealsShortHolds(t *testing.T) {
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
