package results

import "testing"

func TestLabelsOfABusyMachine(t *testing.T) {
	t.Parallel()
	for label, busy := range map[string]bool{
		GeneratorBound: true, BusyMachine: true, OtherCPU + "12%": true, Stolen + "3.0%": true,
		Overloaded + "12 arrivals": false, OutlivedLease: false, "window too short for one fair round": false,
	} {
		if got := (Run{Labels: []string{"other", label}}).MachineBound(); got != busy {
			t.Errorf("%q says that the machine set the pace: %v, want %v", label, got, busy)
		}
	}
}
