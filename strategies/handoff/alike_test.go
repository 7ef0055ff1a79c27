package handoff_test

import (
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// With one client in each process cohort sends what handoff sends, alone and in turns.
func TestWithOneClientCohortCostsWhatHandoffCosts(t *testing.T) {
	t.Parallel()
	cost := map[string]map[string]int{}
	counts := map[string]strategies.ProbeCounts{}
	for _, name := range []string{"handoff", "cohort"} {
		server := redistest.Start(t)
		outside := server.Client(t)
		var all []trial.Process
		for range 4 {
			all = append(all, attentive(t, server, name))
		}
		cost[name] = locktest.Calls(t, outside, func() {
			for range 20 {
				trial.Release(t, all[0].Acquire(t, "alone"))
			}
			takeTurns(t, outside, all, 20)
		})
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
		queued := func() int64 { return outside.LLen(t.Context(), "trial:key:handoff").Val() }
		before := queued()
		go func() {
			lease, err := p.Locker.Acquire(t.Context(), "key")
			if err != nil {
				t.Error(err)
			}
			leases <- lease
		}()
		poll.Until(t, "it is queued", func() bool { return queued() > before })
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
