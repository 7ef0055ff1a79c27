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
		{[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{math.Inf(1), 2, 1}, 2}, {[]float64{math.Inf(1), math.Inf(1)}, math.Inf(1)}, {[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
	} {
		if got := Median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v", got)
	}
}

// The ranks follow from the binomial distribution: that of 11 values leaves out
// (12 + 67) ÷ 2^11 = 3.9 %. Below six there is none of 95 %, and the extremes stand in.
func TestAMediansIntervalIsOfOrderStatistics(t *testing.T) {
	for _, test := range []struct{ n, low, high int }{
		{1, 1, 1}, {5, 1, 5}, {6, 1, 6}, {8, 1, 7}, {9, 2, 8}, {11, 2, 9}, {15, 4, 12}, {20, 6, 15},
	} {
		var values []float64
		for i := range test.n {
			values = append(values, float64(i+1))
		}
		if low, high, sure := interval(values); int(low) != test.low || int(high) != test.high || sure != (test.n >= 6) {
			t.Errorf("of %d values: ranks %g to %g, %v; want %d to %d", test.n, low, high, sure, test.low, test.high)
		}
	}
}
