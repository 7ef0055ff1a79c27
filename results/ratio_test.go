package results

import "testing"

func TestRatiosOfLowerBounds(t *testing.T) {
	t.Parallel()
	m, _ := FindMetric("wait_per_client_p90")
	of := func(atLeast bool, waits ...int64) Summary {
		var s Summary
		for i, ns := range waits {
			run := Run{Round: i + 1}
			run.Waiting.PerClient.P90 = &Bound{NS: ns, AtLeast: atLeast && i == 0}
			s.Used = append(s.Used, run)
		}
		return s
	}
	for _, test := range []struct {
		name    string
		a, b    Summary
		want    string
		unknown bool
	}{
		{"exact", of(false, 30, 20, 40), of(false, 10, 10, 10), "3.00 (2.00–4.00)", false},
		{"at least", of(true, 30, 20, 40), of(false, 10, 10, 10), "≥ 3.00 (≥ 2.00)", false},
		{"at most", of(false, 30, 20, 40), of(true, 10, 10, 10), "≤ 3.00 (≤ 4.00)", false},
		{"a lower bound beside another", of(true, 30, 20), of(true, 10, 10), "", true},
		{"no round in common", of(false, 30), Summary{}, "", true},
		{"a round that only one has", of(false, 30, 20), of(false, 10), "3.00 (3.00–3.00)", false},
	} {
		r := test.a.Against(test.b, m)
		if (r == nil) != test.unknown || r != nil && r.String() != test.want {
			t.Errorf("%s: %v, want %s", test.name, r, test.want)
		}
	}
}

func TestRatiosPairTheRunsOfARound(t *testing.T) {
	t.Parallel()
	run := func(round int, rate float64) Run { return Run{Round: round, Speed: Speed{PerSecond: rate}} }
	base := []Run{run(1, 100), run(2, 50), run(4, 10)}
	m, _ := FindMetric("acq_per_s")
	got := ratio([]Run{run(3, 7), run(2, 100), run(1, 150)}, base, m.Of)
	if got == nil || got.Rounds != 2 || got.Low != 1.5 || got.High != 2 {
		t.Errorf("the ratio is %+v, want 1.5 and 2", got)
	}
}

// Few digits take no bound away.
func TestABoundedRatioInFewDigits(t *testing.T) {
	t.Parallel()
	if text := (Ratio{Median: 41.2, Low: 38.9, High: 55, AtLeast: true}).Text(1); text != "~≥ 40 (≥ 40)" {
		t.Errorf("it is %q", text)
	}
}
