package disturb_test

import (
	"testing"

	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
)

// Confirmed locks are lost by a failover to a replica that has not heard of them. WAIT
// saves those that this replica has, and no others; of independent nodes it takes so
// many that forget or come back that they are a majority without the holder.
func TestWhatCostsExclusion(t *testing.T) {
	t.Parallel()
	lost := func(t *testing.T, _ results.Injection, run *outcome, _ *servers.Server) {
		if run.Safety.Overlaps == 0 || len(run.Safety.Broken) == 0 {
			t.Errorf("nobody was let in beside a holder: %+v, faults %+v, errors %v", run.Safety, run.Faults, run.Errors)
		}
	}
	kept := func(t *testing.T, _ results.Injection, run *outcome, _ *servers.Server) {
		if run.Safety.Overlaps > 0 || len(run.Safety.Broken) > 0 {
			t.Errorf("somebody was let in beside a holder: %+v, faults %+v", run.Safety, run.Faults)
		}
	}
	// Its holders find that they had lost it, whether or not somebody has got it meanwhile: who
	// asks must WAIT too, for a replica that has to find its new primary first.
	forgotten := func(t *testing.T, _ results.Injection, run *outcome, _ *servers.Server) {
		if run.Safety.LostLeases == 0 {
			t.Errorf("every holder still had its lease: %+v, faults %+v, errors %v", run.Safety, run.Faults, run.Errors)
		}
	}
	// Of three nodes one is down while a lock is taken on the two others, of which one then
	// forgets it. With the first back, that is a majority.
	const down, forgets = "node-down:at=100ms,for=1ms,node=1", "node-restart-empty:at=100ms,node=2"
	together(t, []experiment{
		{"spin:wait-replicas=1", "replicas:1", "failover:at=150ms,for=100ms", "200ms", kept},
		{"spin:backoff=fixed,base=5ms,wait-replicas=1", "replicas:2", "failover:at=100ms,for=100ms,lag=50ms", untilOver, forgotten},
		{"redlock", "nodes:3", down + " " + forgets, untilAnother, lost},
		{"redlock", "nodes:3", down, untilAnother, kept},
	})
}
