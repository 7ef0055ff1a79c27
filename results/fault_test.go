package results

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// faulty is a report of runs in which things went wrong on purpose.
func faulty() *Report {
	r := sample()
	for _, text := range []string{"holder-pause:at=1s,for=3s,every=4s", "holder-crash:at=2s"} {
		fault, err := workloads.ParseFault(text)
		if err != nil {
			panic(err)
		}
		r.Workload.Faults = append(r.Workload.Faults, fault)
	}
	r.Workload.TTL = workloads.Duration(time.Second)
	r.Workload.Work = workloads.WorkCounter
	for i := range r.Runs {
		r.Runs[i].Safety.LostUpdates = new(int64(4))
		r.Runs[i].Faults = []Fault{
			{Fault: r.Workload.Faults[0], Strikes: []Strike{
				{
					AtNS: 1_003_000_000, LastedNS: 3_001_000_000, Key: "lockbench:{1:0}", RecoveryNS: new(int64(998_000_000)), Stall: &Bound{NS: 998_000_000},
					Late: 120, LateNS: 1_900_000_000,
				},
				{AtNS: 5_000_000_000, LastedNS: 3_001_000_000, Key: "lockbench:{1:0}", Stall: &Bound{NS: 2_000_000_000, AtLeast: true}, Overlaps: 1, OverlapNS: 10_000, LostWakeUps: 2},
			}},
			{Fault: r.Workload.Faults[1], Strikes: []Strike{}, Missed: []string{"the window ended before it could come about: context canceled"}},
		}
	}
	return r
}

func TestWhatFaultsCameToCanBeHeldAgainstALimit(t *testing.T) {
	r := faulty()
	for name, want := range map[string]Figure{
		"fault_strikes":      {Value: 2},
		"fault_recovery_max": {Value: 998e6},
		"fault_stall_max":    {Value: 2e9, AtLeast: true},
		"lost_wake_ups":      {Value: 2},
	} {
		m, ok := FindMetric(name)
		if !ok {
			t.Fatalf("there is no metric %s", name)
		}
		got := m.Of(r.Runs[0])
		if got == nil || *got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
		if got := m.Of(sample().Runs[0]); got != nil {
			t.Errorf("without faults %s is %+v", name, got)
		}
	}
	// One that never recovers is worse than any that does.
	r.Runs[0].WindowNS = 9e9
	m, _ := FindMetric("fault_recovery_max")
	if got := m.Of(r.Runs[0]); *got != (Figure{Value: 4e9, AtLeast: true}) {
		t.Errorf("never within 4 s of the window is %+v", got)
	}
}
