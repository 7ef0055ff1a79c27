package results

import "testing"

// A safety count that some runs do not know is at least what the others counted, and never a clean 0.
func TestACountThatSomeRunsDoNotKnow(t *testing.T) {
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

// What is unfinished in an open loop includes the arrivals that no client had taken.
func TestUnfinishedCountsTheBacklog(t *testing.T) {
	t.Parallel()
	m, _ := FindMetric("waits_unfinished")
	if f := m.Of(Run{Waiting: Waiting{Open: 10, Backlog: 395}}); f == nil || f.Value != 405 {
		t.Errorf("10 open and 395 in the backlog are %v", f)
	}
}

// Of several nodes the busiest main thread decides; of one it is its own.
func TestTheBusiestMainThread(t *testing.T) {
	t.Parallel()
	node := func(cpu *float64) NodeDelta { return NodeDelta{MainCPU: cpu} }
	for _, test := range []struct {
		delta *ServerDelta
		want  *float64
	}{
		{nil, nil},
		{&ServerDelta{Seconds: 10}, nil},
		{&ServerDelta{Seconds: 10, MainCPU: new(9.5)}, new(95.0)},
		{&ServerDelta{Seconds: 10, MainCPU: new(10.5), Nodes: []NodeDelta{node(new(3.0)), node(nil), node(new(3.5))}}, new(35.0)},
		{&ServerDelta{Seconds: 10, MainCPU: new(10.5), Nodes: []NodeDelta{node(nil)}}, nil},
	} {
		if got := test.delta.MainThreadPercent(); (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%+v: %v, want %v", test.delta, got, test.want)
		}
	}
}

// The median recovery is that of the nearest rank; what never recovered counts as the longest.
func TestTheMedianRecovery(t *testing.T) {
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
		if median, worst := recovery(test.struck, 0.5), recovery(test.struck, 1); median != test.median || worst != test.worst {
			t.Errorf("%d injections: %s and %s, want %s and %s", len(test.struck), median, worst, test.median, test.worst)
		}
	}
}
