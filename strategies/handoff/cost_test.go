package handoff_test

import (
	"maps"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// A handoff is one script, one message and one wake-up, whatever the number of
// waiters; queueing behind one's own is one RPUSHX.
func TestHandoffCostsTheSameForAnyNumberOfWaiters(t *testing.T) {
	server := redistest.Start(t)
	holder := trial.Start(t, server, "handoff", time.Hour)
	waiting := trial.Start(t, server, "handoff", time.Hour)
	for _, waiters := range []int{3, 60} {
		q := newQueue(t, server)
		lease := holder.Acquire(t, "key")
		before := waiting.Counts()
		queueing := locktest.Calls(t, q.server, func() {
			for n := range waiters {
				q.join(n, waiting)
			}
		})
		if queueing["rpushx"] != waiters-1 || queueing["rpush"] != 1 || queueing["evalsha"] != 1 {
			t.Errorf("%d waiters were queued by %d RPUSHX and %d scripts", waiters, queueing["rpushx"], queueing["evalsha"])
		}
		first := locktest.Calls(t, q.server, func() {
			trial.Release(t, lease)
			lease = q.next(0)
		})
		withoutBeats(first)
		want := map[string]int{"evalsha": 1, "time": 1, "lrange": 1, "get": 1, "publish": 1, "lrem": 1, "lset": 1}
		if !maps.Equal(first, want) {
			t.Errorf("with %d waiters a handoff to another process cost %v, want %v", waiters, first, want)
		}
		rest := locktest.Calls(t, q.server, func() {
			for n := 1; n < waiters; n++ {
				trial.Release(t, lease)
				lease = q.next(n)
			}
		})
		withoutBeats(rest)
		for command, n := range rest {
			if n != waiters-1 || command == "publish" {
				t.Errorf("with %d waiters, %d handoffs within a process cost %d %s", waiters, waiters-1, n, command)
			}
		}
		after := waiting.Counts()
		if after.Useful-before.Useful != int64(waiters) || after.Futile != 0 || after.Attempts-before.Attempts != int64(waiters) {
			t.Errorf("%d handoffs: %+v, before %+v", waiters, after, before)
		}
		trial.Release(t, lease)
	}
}

// withoutBeats takes out what goes with time and not with turns: a heartbeat is a script with
// two SETs.
func withoutBeats(calls map[string]int) {
	for _, command := range []string{"evalsha", "time", "get"} {
		calls[command] -= calls["set"] / 2
	}
	delete(calls, "set")
	maps.DeleteFunc(calls, func(_ string, n int) bool { return n == 0 })
}

// An uncontended turn is two scripts of so many commands.
func TestUncontendedCost(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	trial.Release(t, p.Acquire(t, "key"))
	calls := locktest.Calls(t, server.Client(t), func() { trial.Release(t, p.Acquire(t, "key")) })
	withoutBeats(calls)
	want := map[string]int{"evalsha": 2, "time": 2, "lrange": 2, "get": 1, "lset": 2, "pexpire": 1}
	if !maps.Equal(calls, want) {
		t.Errorf("an acquire and a release cost %v, want %v", calls, want)
	}
}
