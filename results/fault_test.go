package results_test

import (
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

func TestWhatFaultsCameToCanBeHeldAgainstALimit(t *testing.T) {
	r := sample.Faulty()
	for name, want := range map[string]results.Figure{
		"fault_injections":   {Value: 2},
		"fault_recovery_max": {Value: 998e6},
		"fault_stall_max":    {Value: 2e9, AtLeast: true},
		"lost_wake_ups":      {Value: 2},
	} {
		m, ok := results.FindMetric(name)
		if !ok {
			t.Fatalf("there is no metric %s", name)
		}
		got := m.Of(r.Runs[0])
		if got == nil || *got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
		if got := m.Of(sample.Report().Runs[0]); got != nil {
			t.Errorf("without faults %s is %+v", name, got)
		}
	}
	// One that never recovers is worse than any that does.
	r.Runs[0].WindowNS = 9e9
	m, _ := results.FindMetric("fault_recovery_max")
	if got := m.Of(r.Runs[0]); *got != (results.Figure{Value: 4e9, AtLeast: true}) {
		t.Errorf("never within 4 s of the window is %+v", got)
	}
}
