package measure

import (
	"testing"
	"time"
)

// The CPU time of other processes must be that of all processes minus that of lockbench and Redis. It must include
// neither interrupts nor stolen time.
func TestForeignCPUTime(t *testing.T) {
	n := cores()
	before := Health{cpu: time.Second, machine: machineTimes{idle: 100, total: 200, steal: 1, processes: 90}}
	after := func(seconds, processes, steal, ours float64) Health {
		return Health{
			cpu:     before.cpu + time.Duration(ours*n*1e9),
			machine: machineTimes{idle: 100, total: 200 + seconds*n, steal: 1 + steal*n, processes: 90 + processes*n},
		}
	}
	is := func(got *float64, want float64) bool { return got != nil && *got > want-1e-9 && *got < want+1e-9 }
	for _, test := range []struct {
		name           string
		h              Health
		redis          float64 // CPU seconds on all cores
		foreign, steal float64
	}{
		{"a quiet machine", after(10, 6, 0, 4), 2, 0, 0},
		{"a neighbour with three tenths", after(10, 9, 0, 4), 2, 30, 0},
		{"a Redis elsewhere", after(10, 6, 0, 4), 0, 20, 0},
		{"a hypervisor that takes a tenth", after(10, 6, 1, 4), 2, 0, 10},
		{"counted less exactly than our own", after(10, 5.9, 0, 4), 2, 0, 0},
	} {
		foreign, steal := test.h.OtherCPUSince(before, test.redis*n), test.h.StolenSince(before)
		if !is(foreign, test.foreign) || !is(steal, test.steal) {
			t.Errorf("%s: foreign %v, steal %v, want %v and %v", test.name, foreign, steal, test.foreign, test.steal)
		}
	}
	for name, h := range map[string]Health{"a moment": after(0.4, 0.4, 0, 0), "a system that does not say": before} {
		if foreign, steal := h.OtherCPUSince(before, 0), h.StolenSince(before); foreign != nil || steal != nil {
			t.Errorf("%s: foreign %v, steal %v", name, foreign, steal)
		}
	}
}
