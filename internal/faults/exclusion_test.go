package faults_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/servers"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
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
	const down, forgets = "node-down:at=1500ms,for=3s,node=1", "node-restart-empty:at=4100ms,node=2"
	divided := experiment{strategy: "redlock", topology: "nodes:3", fault: down + " " + forgets, hold: "3s"}
	tries := 0
	divided.check = func(t *testing.T, s results.Strike, run *outcome, server *servers.Server) {
		if tries++; tries < 3 && !run.heldWhileForgotten() {
			t.Logf("the machine is so busy that no lock was held meanwhile: once more; faults %+v", run.Faults)
			divided.run(t)
			return
		}
		lost(t, s, run, server)
	}
	together(t, []experiment{
		{"spin:wait-replicas=1", "replicas:1", "failover:at=150ms,for=100ms", "200ms", kept},
		// It lags from 1 s on, for the TTL of 1.5 s, and so takes over amid the third hold.
		{"spin:backoff=fixed,base=5ms,wait-replicas=1", "replicas:2", "failover:at=1s,for=100ms", "1s", forgotten},
		divided,
		{"redlock", "nodes:3", down, "3s", kept},
	})
}

// heldWhileForgotten says whether a lock was taken while a node was down, before the
// second fault had another forget it, and held until well after both were back: go-redis
// may wait a second before it dials a server again.
func (o *outcome) heldWhileForgotten() bool {
	const well = int64(time.Second)
	down, forgot := o.Faults[0].Strikes[0], o.Faults[1].Strikes[0]
	return slices.ContainsFunc(o.acquired, func(a workloads.Acquisition) bool {
		return a.Asked > down.AtNS && a.Granted < forgot.AtNS && a.Released > max(down.AtNS+down.LastedNS, forgot.AtNS+forgot.LastedNS)+well
	})
}
