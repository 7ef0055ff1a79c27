package cohort

import (
	"testing"
	"time"
)

// AwaitWaiters returns once that many wait for a key in the process.
func AwaitWaiters(t *testing.T, l *Locker, key string, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); waiters(l, key) != n; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%d wait for %q, want %d", waiters(l, key), key, n)
		}
	}
}

func waiters(l *Locker, key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.cohorts[key]; c != nil {
		return c.waiters.Len()
	}
	return 0
}

// Cohorts is of how many keys somebody holds or wants the lock.
func Cohorts(l *Locker) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.cohorts)
}
