package trial

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// DeadHolderCostsFewAttempts checks that a waiter parks until a dead holder's lock runs out,
// and does not poll it. hold holds "trial:key" for that time, and parked is how many attempts
// precede parking.
func DeadHolderCostsFewAttempts(t *testing.T, variant string, parked int64, hold func(server *redistest.Server, left time.Duration) error) {
	t.Helper()
	Calm(t, func(times int) string {
		server := redistest.Start(t)
		p := Start(t, server, variant, time.Hour) // nobody is woken by its own leases
		if err := hold(server, time.Duration(times)*200*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		Release(t, p.Acquire(t, "key"))
		counts := p.Counts()
		if counts.Attempts <= parked {
			return "the lock ran out before anybody was parked"
		}
		if counts.Attempts > 8 {
			t.Errorf("%d attempts for a lock that runs out once", counts.Attempts)
		}
		if counts.Useful != 1 || counts.Futile != counts.Attempts-parked-1 {
			t.Errorf("%+v: every attempt but the first %d must follow a wake-up, one of them useful", counts, parked)
		}
		return ""
	})
}
