package main

import (
	"math"
	"testing"
)

// The ranks by which the targets are judged.
func TestRank(t *testing.T) {
	for n, want := range map[int]int{1: 0, 3: 0, 6: 0, 7: 1, 10: 1, 11: 2, 14: 3, 15: 3, 20: 5, 30: 9} {
		if got := rank(n); got != want {
			t.Errorf("of %d rounds the %d-th smallest decides, want %d", n, got, want)
		}
	}
	// By the definition: P(Bin(n, ½) < k), counted out.
	for n := 1; n <= 40; n++ {
		tail := func(k int) float64 {
			sum := 0.0
			for i := range k {
				sum += choose(n, i) / math.Pow(2, float64(n))
			}
			return sum
		}
		if k := rank(n); tail(k) > doubt || tail(k+1) <= doubt {
			t.Errorf("rank(%d) = %d, beyond which the median lies with %g, and %g for the next", n, k, tail(k), tail(k+1))
		}
	}
}

func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return math.Round(c)
}

func TestInterval(t *testing.T) {
	eleven := []float64{11, 2, 10, 3, 9, 1, 8, 4, 7, 5, 6}
	if got, want := summarise(eleven), (interval{6, 2, 10, 2, 11}); got != want {
		t.Errorf("of 1 to 11: %+v, want %+v", got, want)
	}
	if got, want := summarise([]float64{4, 1, 3, 2}), (interval{2.5, 1, 4, 0, 4}); got != want {
		t.Errorf("of 1 to 4: %+v, want %+v", got, want)
	}
	if got := summarise([]float64{7}); got.median != 7 || got.low != 7 || got.high != 7 {
		t.Errorf("of a single 7: %+v", got)
	}
}

func TestVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		target target
		values interval
		want   string
	}{
		"the second-smallest meets it":     {target{figure: speed, limit: 1.2}, interval{1.5, 1.21, 2, 2, 11}, "met"},
		"only the median does":             {target{figure: speed, limit: 1.2}, interval{1.5, 0.9, 2, 2, 11}, "**missed** by 25 %"},
		"which is all that counts":         {target{figure: speed, limit: 1.2, byMedian: true}, interval{1.5, 0.9, 2, 2, 11}, "met"},
		"the second-largest meets it":      {target{figure: p99, limit: 0.5}, interval{0.1, 0.01, 0.5, 2, 11}, "met"},
		"of what should be small one is 3": {target{figure: turns, limit: 2}, interval{1, 1, 3, 2, 11}, "**missed** by 50 %"},
		"a p99 that nobody saw":            {target{figure: p99, limit: 0.5}, interval{0.1, 0.01, math.Inf(1), 2, 11}, "**missed**: unbounded"},
		"three rounds prove nothing":       {target{figure: speed, limit: 1.2}, interval{9, 9, 9, 0, 3}, "too few rounds"},
		"no limit":                         {target{figure: speed, limit: report}, interval{9, 9, 9, 2, 11}, "reported"},
	} {
		if got := test.target.verdict(test.values); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
