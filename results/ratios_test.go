package results

import "testing"

func TestAMediansIntervalIsTheTextbooks(t *testing.T) {
	for _, test := range []struct{ n, low, high int }{ // ranks, from tables of the sign test
		{5, 0, 0}, {6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {11, 2, 10}, {15, 4, 12}, {20, 6, 15},
	} {
		var values []float64
		for i := range test.n {
			values = append(values, float64(i+1))
		}
		low, high, ok := medianInterval(values)
		if ok != (test.low > 0) || int(low) != test.low || int(high) != test.high {
			t.Errorf("of %d values: ranks %g to %g, %v; want %d to %d", test.n, low, high, ok, test.low, test.high)
		}
	}
}

func TestRatiosPairTheRunsOfARound(t *testing.T) {
	run := func(round int, rate float64) Run { return Run{Round: round, Speed: Speed{PerSecond: rate}} }
	base := summary{used: []Run{run(1, 100), run(2, 50), run(4, 10)}}
	s := summary{used: []Run{run(3, 7), run(2, 100), run(1, 150)}}
	got := ratios(s, base, func(r Run) *float64 { return exactly(r.Speed.PerSecond) })
	if len(got) != 2 || got[0] != 1.5 || got[1] != 2 {
		t.Errorf("ratios %v, want 1.5 and 2", got)
	}
}
