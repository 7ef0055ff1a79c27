package html

import (
	"math"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestEndsOfALogarithmicAxis(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64][2]float64{
		3: {2, 5}, 5: {5, 5}, 1: {1, 1}, 7e8: {5e8, 1e9},
		0.0012: {0.001, 0.002}, 1000: {1000, 1000}, 9.9: {5, 10},
	} {
		if low, high := below(v), above(v); math.Abs(low/want[0]-1) > 1e-9 || math.Abs(high/want[1]-1) > 1e-9 {
			t.Errorf("%v is between %v and %v, not %v", v, low, high, want)
		}
	}
}

func TestTicksHaveNoTrailingZeros(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		unit results.Unit
		want string
	}{
		{1e6, results.Nanoseconds, "1 ms"},
		{2.5e6, results.Nanoseconds, "2.5 ms"},
		{100, results.Number, "100"},
		{1e6, results.Number, "1 M"},
		{1500, results.PerSecond, "1.5 k"},
		{40, results.Percent, "40 %"},
		{0, results.Percent, "0 %"},
		{0, results.Number, "0"},
	} {
		if got := short(c.v, c.unit); got != c.want {
			t.Errorf("%v of %q is %q, not %q", c.v, c.unit, got, c.want)
		}
	}
}
