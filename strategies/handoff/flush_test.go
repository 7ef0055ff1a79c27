package handoff_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Redis forgets its scripts: whoever only waits has it learn them again, to look after a
// dead holder's lock and to get an old place back.
func TestWaitersLoadForgottenScripts(t *testing.T) {
	flush := func(q *queue) {
		t.Helper()
		if err := q.server.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("dead holder", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		dead, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Second)
		q := newQueue(t, server)
		lease := dead.Acquire(t, "key")
		q.join(0, p)
		if err := lease.(strategies.Extender).Extend(t.Context(), 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		flush(q)
		trial.Release(t, q.next(0))
	})
	t.Run("skipped", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		holder, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
		q := newQueue(t, server)
		lease := holder.Acquire(t, "key")
		q.join(0, p)
		q.join(1, p)
		waiting := q.server.LRange(t.Context(), list, 1, 2).Val()
		q.server.Del(t.Context(), channelOf(waiting[0][:36]+":1"))
		q.server.LTrim(t.Context(), list, 0, 0)
		flush(q)
		trial.Eventually(t, "they stand in the queue again", func() bool { return q.length() == 3 })
		for n := range 2 {
			trial.Release(t, lease)
			lease = q.next(n)
		}
		trial.Release(t, lease)
	})
}
