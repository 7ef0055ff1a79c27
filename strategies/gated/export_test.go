package gated

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

func of(locker strategies.Locker) *Locker {
	switch l := locker.(type) {
	case *termed:
		return l.Locker
	case *trier:
		return l.Locker
	}
	return locker.(*Locker)
}

// Gates is how many keys have one.
func Gates(locker strategies.Locker) int {
	g := &of(locker).gates
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.byKey)
}

// AwaitWaiters waits until so many wait before a key's gate, and gives the last of them
// a moment to block there.
func AwaitWaiters(t *testing.T, locker strategies.Locker, key string, n int) {
	t.Helper()
	g := &of(locker).gates
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		users := 0
		if at := g.byKey[key]; at != nil {
			users = at.users
		}
		g.mu.Unlock()
		if users == n+1 {
			for range 5 { // one sleep is over at once when the whole process was stopped
				time.Sleep(time.Millisecond)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d are in or before the gate, want %d", users, n+1)
		}
	}
}
