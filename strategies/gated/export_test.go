package gated

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// AwaitUsers waits until n callers are inside the gate of a key or wait for the gate. It then sleeps for 5 ms, so that
// the last caller blocks at the gate.
func AwaitUsers(t *testing.T, locker strategies.Locker, key string, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		users := locker.(*Locker).gates.Users(key)
		if users == n {
			for range 5 { // one sleep is over at once when the whole process was stopped
				time.Sleep(time.Millisecond)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d are in or before the gate, want %d", users, n)
		}
	}
}
