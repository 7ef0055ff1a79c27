package trial

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// Rate has clients, spread over lockers, acquire and release for that long. It returns their
// turns per second.
func Rate(t testing.TB, lockers []strategies.Locker, key string, clients int, length time.Duration) float64 {
	t.Helper()
	var all sync.WaitGroup
	var turns atomic.Int64
	began := time.Now()
	end := began.Add(length)
	for n := range clients {
		all.Go(func() {
			for time.Now().Before(end) {
				lease, err := lockers[n%len(lockers)].Acquire(context.Background(), key)
				if err == nil {
					err = lease.Release(context.Background())
				}
				if err != nil {
					t.Error(err)
					return
				}
				turns.Add(1)
			}
		})
	}
	all.Wait()
	return float64(turns.Load()) / time.Since(began).Seconds()
}
