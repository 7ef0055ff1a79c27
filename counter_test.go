package lockbench_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/workloads"
)

// The test kills the locks' server and restarts it without its data, so several clients hold the lock at the same time.
// A counter on a separate server must reveal the lost updates. A counter on the locks' server is lost with the locks
// and cannot reveal them.
func TestSeparateCounterRevealsLostUpdates(t *testing.T) {
	t.Parallel()
	fault, err := workloads.ParseFault("kill:at=300ms,for=10ms,data=lose")
	if err != nil {
		t.Fatal(err)
	}
	for place, tells := range map[workloads.CounterPlace]bool{
		workloads.CounterApart:     true,
		workloads.CounterWithLocks: false,
	} {
		p := plan(t, "process", "spin", func(p *lockbench.Plan) {
			p.Workload.Clients, p.Workload.Iterations, p.Workload.Duration = 4, 0, workloads.Duration(6*time.Second)
			// The hold is so long that no client releases its lock before the run ends, however long the restart takes.
			p.Workload.Work, p.Workload.Counter, p.Workload.Hold = workloads.WorkCounter, place,
				workloads.Fixed(time.Minute)
			p.Workload.Faults = []workloads.Fault{fault}
		})
		report, err := lockbench.Run(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		safety := report.Runs[0].Safety
		if lost := safety.LostUpdates; (lost != nil) != tells || tells && (*lost == 0 || safety.Overlaps == 0) {
			t.Errorf("%q: lost updates are %v, overlaps %d", place, lost, safety.Overlaps)
		}
		if len(safety.Leftovers) > 0 {
			t.Errorf("%q: left %v", place, safety.Leftovers)
		}
	}
}
