package cohort_test

import (
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// With one client in each process cohort sends what handoff sends, alone and in turns.
func TestWithOneClientItCostsWhatHandoffCosts(t *testing.T) {
	cost := map[string]map[string]int{}
	counts := map[string]strategies.ProbeCounts{}
	for _, name := range []string{"handoff", "cohort"} {
		server := redistest.Start(t)
		outside := server.Client(t)
		all := []trial.Process{
			trial.Start(t, server, name, time.Hour), trial.Start(t, server, name, time.Hour), trial.Start(t, server, name, time.Hour),
		}
		cost[name] = locktest.Calls(t, outside, func() {
			for range 20 {
				trial.Release(t, all[0].Acquire(t, "alone"))
			}
			takeTurns(t, outside, all, 20)
		})
		delete(cost[name], "set") // heartbeats
		delete(cost[name], "llen")
		counts[name] = trial.Total(all...)
	}
	if !maps.Equal(cost["cohort"], cost["handoff"]) {
		t.Errorf("cohort cost %v, handoff %v", cost["cohort"], cost["handoff"])
	}
	if counts["cohort"] != counts["handoff"] {
		t.Errorf("cohort counted %+v, handoff %+v", counts["cohort"], counts["handoff"])
	}
}

// takeTurns has each process's client hold the lock while the others wait.
func takeTurns(t *testing.T, outside *redis.Client, all []trial.Process, turns int) {
	t.Helper()
	leases := make(chan strategies.Lease, len(all))
	join := func(p trial.Process) {
		before := outside.LLen(t.Context(), "trial:key:handoff").Val()
		go func() {
			lease, err := p.Locker.Acquire(t.Context(), "key")
			if err != nil {
				t.Error(err)
			}
			leases <- lease
		}()
		trial.Eventually(t, "it is queued", func() bool { return outside.LLen(t.Context(), "trial:key:handoff").Val() > before })
	}
	lease := all[0].Acquire(t, "key")
	for _, p := range all[1:] {
		join(p)
	}
	for turn := range turns {
		trial.Release(t, lease)
		if lease = <-leases; lease == nil {
			return
		}
		if left := turns - turn; left > len(all)-1 {
			join(all[turn%len(all)])
		} else if left == 1 {
			trial.Release(t, lease)
		}
	}
}

// A batch costs Redis what handoff costs for one acquisition, and its passes nothing.
func TestPassesCostNothing(t *testing.T) {
	const waiters = 50
	server := redistest.Start(t)
	outside := server.Client(t)
	holder, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "cohort", time.Hour)
	lease := holder.Acquire(t, "key")
	q := newQueue(t)
	queueing := locktest.Calls(t, outside, func() {
		for range waiters {
			q.join("somebody", p)
		}
		trial.Eventually(t, "the process is queued", func() bool { return outside.LLen(t.Context(), "trial:key:handoff").Val() == 2 })
	})
	if queueing["evalsha"] != 1 || queueing["rpush"] != 1 || queueing["rpushx"] != 0 {
		t.Errorf("queueing cost %v, want one script", queueing)
	}
	before := p.Counts()
	trial.Release(t, lease)
	lease = q.next(p).lease
	passes := locktest.Calls(t, outside, func() {
		for range waiters - 1 {
			trial.Release(t, lease)
			lease = q.next(p).lease
		}
	})
	delete(passes, "set") // a heartbeat of who waited may be due
	if len(passes) > 0 {
		t.Errorf("%d passes cost %v", waiters-1, passes)
	}
	if after := p.Counts(); after.Useful-before.Useful != waiters || after.Futile != 0 || after.Attempts != before.Attempts {
		t.Errorf("%d acquisitions: %+v, before %+v", waiters, after, before)
	}
	// Giving up and queueing again is one script, here with nobody else in the queue.
	q.join("somebody", p)
	again := locktest.Calls(t, outside, func() {
		trial.Release(t, lease)
		lease = q.next(p).lease
	})
	if again["evalsha"] != 1 {
		t.Errorf("releasing and queueing again cost %v, want one script", again)
	}
	trial.Release(t, lease)
}
