package results

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantiles(t *testing.T) {
	exact := func(ns int64) *Bound { return &Bound{NS: ns} }
	atLeast := func(ns int64) *Bound { return &Bound{NS: ns, AtLeast: true} }
	ones := func(values ...int64) []bin {
		var bins []bin
		for _, v := range values {
			bins = append(bins, bin{v, 1})
		}
		return bins
	}
	for _, test := range []struct {
		name            string
		ended, censored []bin
		q               float64
		want            *Bound
	}{
		{"nothing", nil, nil, 0.5, nil},
		{"one", ones(7), nil, 0.99, exact(7)},
		{"nearest rank", ones(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), nil, 0.9, exact(9)},
		{"just beyond", ones(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), nil, 0.91, exact(10)},
		{"median of four", ones(1, 2, 3, 4), nil, 0.5, exact(2)},
		// Kaplan and Meier: S is 3/4 after 1; one of the three is lost sight of at
		// 2; S is 3/4 · 1/2 after 3 and 0 after 4.
		{"censored between, below", ones(1, 3, 4), ones(2), 0.6, exact(3)},
		{"censored between, above", ones(1, 3, 4), ones(2), 0.63, exact(4)},
		{"a tie ends before it is censored", ones(2, 3), ones(2), 0.5, exact(3)},
		{"all censored", nil, ones(5, 9), 0.5, atLeast(9)},
		{"the tail is censored", ones(1, 1, 1), ones(100), 0.9, atLeast(100)},
		{"below the censored tail", []bin{{1, 3}}, ones(100), 0.75, exact(1)},
		{"dropping the open wait would say 1", []bin{{1, 98}}, []bin{{1000, 2}}, 0.99, atLeast(1000)},
		{"weights", []bin{{1, 0.5}, {2, 0.5}}, nil, 0.5, exact(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := newSurvival(test.ended, test.censored).Quantile(test.q)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("quantile %g: %s", test.q, diff)
			}
		})
	}
}
