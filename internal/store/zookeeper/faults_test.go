package zookeeper

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/workloads"
)

// Whatever befalls a server alone, locks are had again, and nobody is let in twice.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{})
	faults := []string{"kill:at=100ms,for=100ms,data=lose", "pause:at=100ms,for=1500ms", "crash-between:at=100ms,command=2"}
	if extent.Thorough() {
		faults = append(faults, "kill:at=100ms,for=100ms,data=keep", "holder-pause:at=100ms", "partition:at=100ms,for=500ms,instances=1")
	}
	for _, text := range faults {
		t.Run(text, func(t *testing.T) {
			run(t, s, func(w *workloads.Spec) {
				w.TTL, w.Faults = workloads.Duration(time.Second), []workloads.Fault{fault(t, text)}
			})
			if err := s.Settle(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
