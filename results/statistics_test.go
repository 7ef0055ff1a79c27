package results

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{3, 1}, 2},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{math.Inf(1), 2, 1}, 2},
		{[]float64{math.Inf(1), math.Inf(1)}, math.Inf(1)},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
	} {
		if got := Median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v", got)
	}
}

func TestMedianOfLowerBounds(t *testing.T) {
	exact := func(v float64) Figure { return Figure{Value: v} }
	least := func(v float64) Figure { return Figure{Value: v, AtLeast: true} }
	for i, test := range []struct {
		figures []Figure
		want    *Figure
	}{
		{nil, nil},
		{[]Figure{exact(5)}, &Figure{Value: 5}},
		{[]Figure{exact(9), exact(1), exact(5)}, &Figure{Value: 5}},
		{[]Figure{exact(2), exact(4)}, &Figure{Value: 3}},
		{[]Figure{exact(1), exact(5), least(9)}, &Figure{Value: 5}},                // 9 or more: the middle stays
		{[]Figure{least(1), exact(5), exact(9)}, &Figure{Value: 5, AtLeast: true}}, // may be 7
		{[]Figure{exact(2), least(4)}, &Figure{Value: 3, AtLeast: true}},
	} {
		if got := MedianFigure(test.figures); (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%d: got %v, want %v", i, got, test.want)
		}
	}
}

// Claims are judged by these intervals at 98 %. For n values, the ends must be the k-th smallest and the k-th largest
// value. k is the largest number for which P(Bin(n, ½) < k) is at most 1 %.
func TestFigureIntervalRanks(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{
		1: 0, 3: 0, 6: 0, 7: 1, 8: 1, 9: 1, 10: 1, 11: 2, 13: 2, 14: 3, 15: 3, 20: 5,
		30: 9,
	} {
		var values []Figure
		for i := range n {
			values = append(values, Figure{Value: float64((i*7 + 3) % n)}) // in no order
		}
		if n%7 == 0 {
			for i := range values {
				values[i].Value = float64(n - 1 - i)
			}
		}
		low, high, sure := FigureInterval(values, 0.98)
		at := max(want, 1)
		if low.Value != float64(at-1) || high.Value != float64(n-at) || sure != (want > 0) {
			t.Errorf("of 0 to %d it is %v to %v, sure: %v; want the %d-th from both ends", n-1, low.Value, high.Value,
				sure, at)
		}
	}
}

func TestRatiosOfLowerBounds(t *testing.T) {
	t.Parallel()
	m, _ := FindMetric("wait_per_client_p90")
	waited := func(round int, ns int64) Run {
		return Run{Round: round, Waiting: Waiting{PerClient: Distribution{P90: &Bound{NS: ns}}}}
	}
	of := func(atLeast bool, waits ...int64) Summary {
		var s Summary
		for i, ns := range waits {
			s.Used = append(s.Used, waited(i+1, ns))
		}
		s.Used[0].Waiting.PerClient.P90.AtLeast = atLeast
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
		{"a lower bound against another", of(true, 30, 20), of(true, 10, 10), "", true},
		{"no round in common", of(false, 30), Summary{}, "", true},
		{"a round that only one has", of(false, 30, 20), of(false, 10), "3.00 (3.00–3.00)", false},
		{
			"rounds in another order, and one of each alone",
			Summary{Used: []Run{waited(3, 70), waited(2, 100), waited(1, 150)}},
			Summary{Used: []Run{waited(1, 100), waited(2, 50), waited(4, 10)}},
			"1.75 (1.50–2.00)", false,
		},
	} {
		r := test.a.Against(test.b, m)
		if (r == nil) != test.unknown || r != nil && r.String() != test.want {
			t.Errorf("%s: %v, want %s", test.name, r, test.want)
		}
	}
	// A ratio that is a lower bound must be marked "≥" even if it is also marked "~".
	if text := (Ratio{Median: 41.2, Low: 38.9, High: 55, AtLeast: true, Digits: 1}).String(); text != "~≥ 40 (≥ 40)" {
		t.Errorf("a ratio of one digit is %q", text)
	}
}
