package zookeeper

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// Whatever befalls a server alone, locks are had again, and nobody is let in twice.
func TestFaults(t *testing.T) {
	s := open(t, store.Options{})
	for _, text := range []string{
		"kill:at=300ms,for=200ms,data=keep", "kill:at=300ms,for=200ms,data=lose", "pause:at=300ms,for=1500ms",
		"holder-pause:at=300ms", "crash-between:at=300ms,command=2", "partition:at=300ms,for=500ms,instances=1",
	} {
		t.Run(text, func(t *testing.T) {
			run := drive(t, s, workload(func(w *workloads.Spec) {
				w.Duration, w.TTL = workloads.Duration(5*time.Second), workloads.Duration(time.Second)
				w.Faults = []workloads.Fault{fault(t, text)}
			}))
			if len(run.Faults[0].Strikes) != 1 || run.Faults[0].Strikes[0].RecoveryNS == nil {
				t.Fatalf("faults %+v", run.Faults)
			}
			t.Logf("locks were had again after %v", time.Duration(*run.Faults[0].Strikes[0].RecoveryNS))
			if err := s.Settle(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
