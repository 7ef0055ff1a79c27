package disturb_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
)

// Confirmed locks are lost by a failover to a replica that has not heard of them. WAIT
// saves those that this replica has, and no others; of independent nodes it takes so
// many that forget or come back that they are a majority without the holder.
func TestWhatCostsExclusion(t *testing.T) {
	t.Parallel()
	lost := func(t *testing.T, _ results.Strike, run *outcome, _ *servers.Server) {
		if run.Safety.Overlaps == 0 || len(run.Safety.Broken) == 0 {
			t.Errorf("nobody was let in beside a holder: %+v, faults %+v, errors %v", run.Safety, run.Faults, run.Errors)
		}
	}
	kept := func(t *testing.T, _ results.Strike, run *outcome, _ *servers.Server) {
		if run.Safety.Overlaps > 0 || len(run.Safety.Broken) > 0 {
			t.Errorf("somebody was let in beside a holder: %+v, faults %+v", run.Safety, run.Faults)
		}
	}
	// Its holders find that they had lost it, whether or not somebody has got it meanwhile: who
	// asks must WAIT too, for a replica that has to find its new primary first.
	forgotten := func(t *testing.T, _ results.Strike, run *outcome, _ *servers.Server) {
		if run.Safety.LostLeases == 0 {
			t.Errorf("every holder still had its lease: %+v, faults %+v, errors %v", run.Safety, run.Faults, run.Errors)
		}
	}
	// Of three nodes one is down while locks are taken on the two others, of which one then
	// forgets them. With the first back, that is a majority.
	// The first one's key of the first hold, which it could not be told to delete, runs out at 6 s, amid
	// the second hold. So each step has a second or two to come about in.
	const down, forgets = "node-down:at=2s,for=3s,node=1", "node-restart-empty:at=5s,node=2"
	together(t, []experiment{
		{"spin:wait-replicas=1", "replicas:1", "failover:at=150ms,for=100ms", "200ms", kept},
		// It lags from 1 s on, for the TTL of 1.5 s, and so takes over amid the third hold.
		{"spin:backoff=fixed,base=5ms,wait-replicas=1", "replicas:2", "failover:at=1s,for=100ms", "1s", forgotten},
		patiently(experiment{"redlock", "nodes:3", down + " " + forgets, "4s", lost}, heldByNobody),
		{"redlock", "nodes:3", down, "4s", kept},
	})
}

// heldByNobody says whether no lock was taken while the first node was down, before the
// other was made to forget it, and held until well after that could be noticed: go-redis
// may wait a second before it dials a server again.
func heldByNobody(_ results.Strike, run *outcome) bool {
	const killing, noticing = int64(200 * time.Millisecond), int64(time.Second)
	down, forgot := run.Faults[0].Strikes[0], run.Faults[1].Strikes[0]
	back := max(down.AtNS+down.LastedNS, forgot.AtNS+forgot.LastedNS, int64(6*time.Second))
	return !slices.ContainsFunc(run.acquired, func(a engine.Acquisition) bool {
		return a.Granted > down.AtNS+killing && a.Granted < min(forgot.AtNS, down.AtNS+down.LastedNS) && a.Released > back+noticing
	})
}
