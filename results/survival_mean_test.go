package results

import (
	"math"
	"testing"
)

func TestTheMeanIsTheAreaUnderTheCurve(t *testing.T) {
	for _, test := range []struct {
		name            string
		ended, censored []bin
		want            float64
		atLeast         bool
	}{
		{"without open waits it is the plain mean", []bin{{1, 1}, {3, 2}, {5, 1}}, nil, 3, false},
		// S is 3/4 from 1 on, 3/8 from 3 on, 0 from 4 on: 1 + 3/4·2 + 3/8.
		{"one was lost sight of on the way", []bin{{1, 1}, {3, 1}, {4, 1}}, []bin{{2, 1}}, 1 + 1.5 + 0.375, false},
		// Those that ended have a mean of 1; half of them never do.
		{"the longest had not ended", []bin{{1, 2}}, []bin{{101, 2}}, 1 + 0.5*100, true},
		{"none had ended", nil, []bin{{5, 1}, {9, 1}}, 9, true},
		// Many short ones that were cut off do not make the mean shorter, nor unknown.
		{"hundreds were cut off early", []bin{{100, 10}}, []bin{{1, 400}}, 100, false},
	} {
		got := newCurve(test.ended, test.censored, nil).mean()
		if got == nil || math.Abs(got.Value-test.want) > 1e-9 || got.AtLeast != test.atLeast {
			t.Errorf("%s: %+v, want %v (at least: %v)", test.name, got, test.want, test.atLeast)
		}
	}
	if got := newCurve(nil, nil, nil).mean(); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}
