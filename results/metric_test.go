package results

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The safety count of some runs is unknown. The sum over the others must be a lower bound, or unknown if it is 0.
func TestPartlyUnknownCountIsALowerBound(t *testing.T) {
	t.Parallel()
	m, _ := FindMetric("lost_updates")
	for _, test := range []struct {
		counts []*int64
		want   *Figure
	}{
		{[]*int64{new(int64(0)), new(int64(0))}, &Figure{}},
		{[]*int64{nil, nil}, nil},
		{[]*int64{nil, new(int64(0))}, nil},
		{[]*int64{nil, new(int64(2))}, &Figure{Value: 2, AtLeast: true}},
		{[]*int64{new(int64(1)), new(int64(2))}, &Figure{Value: 3}},
	} {
		var s Summary
		for _, n := range test.counts {
			s.Runs = append(s.Runs, Run{Safety: Safety{LostUpdates: n}})
		}
		if got := s.Figure(m); (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%v: %+v, want %+v", test.counts, got, test.want)
		}
	}
}

// The number of starved clients is unknown in one of two rounds. The figure for both must be unknown, because clients
// may have starved in that round.
func TestStarvedIsUnknownIfAnyRunIs(t *testing.T) {
	t.Parallel()
	m, _ := FindMetric("starved")
	runs := []Run{{}, {Fairness: Fairness{Starved: new(12)}}}
	if got := (Summary{Used: runs}).Figure(m); got != nil {
		t.Errorf("one of two runs does not know it, and the figure is %+v", got)
	}
	if got := (Summary{Used: runs[1:]}).Figure(m); got == nil || got.Value != 12 {
		t.Errorf("the figure of one run is %+v", got)
	}
}

// The cases cover metrics that are computed, and metrics that only some runs have. A metric must be unknown for a run
// that lacks its data.
func TestRunFigures(t *testing.T) {
	t.Parallel()
	bursts := Run{Herd: &Herd{Attempts: new(99.0)}}
	faults := Run{Faults: []Fault{{Injections: []Injection{
		{RecoveryNS: new(int64(998e6)), Stall: &Bound{NS: 1e9}, LostWakeUps: 2},
		{RecoveryNS: new(int64(5e6)), Stall: &Bound{NS: 2e9, AtLeast: true}},
	}}}}
	never := Run{WindowNS: 9e9, Faults: []Fault{{Injections: []Injection{
		{RecoveryNS: new(int64(998e6))}, {AtNS: 5e9},
	}}}}
	cpu := func(seconds float64, acquisitions int64) Run {
		return Run{Generator: Generator{CPUSeconds: seconds}, Speed: Speed{Acquisitions: acquisitions}}
	}
	for _, test := range []struct {
		metric string
		run    Run
		want   *Figure
	}{
		// In an open loop, the unfinished waits must include the arrivals that no client had taken.
		{"waits_unfinished", Run{Waiting: Waiting{Open: 10, Backlog: 395}}, &Figure{Value: 405}},
		{"client_cpu_per_acq", cpu(1.5, 1000), &Figure{Value: 1.5e6}},
		{"client_cpu_per_acq", cpu(1.5, 0), nil},
		{"client_cpu_per_acq", cpu(0, 1000), nil}, // the system does not report it
		{"burst_attempts", bursts, &Figure{Value: 99}},
		{"burst_attempts", Run{}, nil},
		{"burst_wake_ups", Run{}, nil},
		{"max_holders", Run{Safety: Safety{MaxHolders: 4}}, &Figure{Value: 4}},
		{"refused_updates", Run{Safety: Safety{Refused: new(int64(3))}}, &Figure{Value: 3}},
		{"refused_updates", Run{}, nil},
		{"acquisitions", cpu(0, 7), &Figure{Value: 7}},
		{"fault_injections", faults, &Figure{Value: 2}},
		{"fault_injections", Run{}, nil},
		{"fault_recovery_max", faults, &Figure{Value: 998e6}},
		{"fault_recovery_max", never, &Figure{Value: 4e9, AtLeast: true}}, // worse than any that does
		{"fault_recovery_max", Run{}, nil},
		{"fault_stall_max", faults, &Figure{Value: 2e9, AtLeast: true}},
		{"fault_stall_max", Run{}, nil},
		{"lost_wake_ups", faults, &Figure{Value: 2}},
		{"lost_wake_ups", Run{}, nil},
	} {
		m, known := FindMetric(test.metric)
		if got := m.Of(test.run); !known || (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s is %+v, want %+v", test.metric, got, test.want)
		}
	}
}

// A server has several nodes. MainThreadPercent must return the CPU use of the busiest main thread, even if that of
// another node is unknown.
func TestBusiestMainThread(t *testing.T) {
	t.Parallel()
	node := func(cpu *float64) NodeDelta { return NodeDelta{MainCPU: cpu} }
	for _, test := range []struct {
		delta *ServerDelta
		want  *float64
	}{
		{nil, nil},
		{&ServerDelta{Seconds: 10}, nil},
		{&ServerDelta{Seconds: 10, MainCPU: new(9.5)}, new(95.0)},
		{
			&ServerDelta{
				Seconds: 10, MainCPU: new(10.5), Nodes: []NodeDelta{node(new(3.0)), node(nil), node(new(3.5))},
			},
			new(35.0),
		},
		{&ServerDelta{Seconds: 10, MainCPU: new(10.5), Nodes: []NodeDelta{node(nil)}}, nil},
	} {
		if got := test.delta.MainThreadPercent(); (got == nil) != (test.want == nil) || got != nil &&
			*got != *test.want {
			t.Errorf("%+v: %v, want %v", test.delta, got, test.want)
		}
	}
}

// The median recovery must be the value of the nearest rank. A missing recovery must count as the longest, and be
// printed as "never".
func TestMedianRecovery(t *testing.T) {
	t.Parallel()
	after := func(ns ...int64) []Injection {
		var all []Injection
		for _, n := range ns {
			if n == 0 {
				all = append(all, Injection{})
			} else {
				all = append(all, Injection{RecoveryNS: &n})
			}
		}
		return all
	}
	for _, test := range []struct {
		struck        []Injection
		median, worst string
	}{
		{after(), "–", "–"},
		{after(3e9), "3.00 s", "3.00 s"},
		{after(30e9, 12e6), "12.0 ms", "30.0 s"},
		{after(0, 12e6), "12.0 ms", "never"},
		{after(0, 0, 12e6), "never", "never"},
		{after(3e9, 1e9, 2e9), "2.00 s", "3.00 s"},
	} {
		if median, worst := recovery(test.struck, 0.5), recovery(test.struck, 1); median != test.median ||
			worst != test.worst {
			t.Errorf("%d injections: %s and %s, want %s and %s", len(test.struck), median, worst, test.median,
				test.worst)
		}
	}
}

func TestBusyMachineLabels(t *testing.T) {
	t.Parallel()
	for label, busy := range map[Code]bool{
		GeneratorBound: true, BusyMachine: true, OtherCPU: true, Stolen: true,
		Overloaded: false, OutlivedLease: false, ShortOfARound: false,
	} {
		if got := (Run{Labels: Remarks{PlainText("other"), label.Remark()}}).MachineBound(); got != busy {
			t.Errorf("%q: the machine limited the speed: %v, want %v", label, got, busy)
		}
	}
}

// All fields of a run are set, so every metric except those of Redis's CPU time must have a figure. The names of all
// percentiles of a distribution must differ only in their ends (_p50, _p99 and so on), because thresholds use the part
// before the end.
func TestPercentilesAreNamedAfterTheirDistribution(t *testing.T) {
	var whole Run
	fill(reflect.ValueOf(&whole).Elem())
	whole.Record.Generators = 1
	of := map[string]string{}
	for _, m := range Metrics() {
		if m.Of(whole) == nil && !strings.HasPrefix(m.Name, "redis_cpu") {
			t.Errorf("%s is not known of a run that knows everything", m.Name)
		}
		path, percent := m.percentile()
		if path == "" {
			continue
		}
		stem, found := strings.CutSuffix(m.Name, "_p"+strings.ReplaceAll(fmt.Sprint(percent), ".", ""))
		if other, there := of[stem]; !found || there && other != path {
			t.Errorf("%s is the percentile %v of %s, not of %s", m.Name, percent, path, other)
		}
		of[stem] = path
	}
}

func TestRangesOfCPUs(t *testing.T) {
	t.Parallel()
	for want, numbers := range map[string][]int{
		"": nil, "on CPU 3": {3}, "on CPU 0-1": {0, 1}, "on CPU 0,2": {0, 2}, "on CPU 0-3,8": {0, 1, 2, 3, 8},
	} {
		if got := cpus("on", numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
}
