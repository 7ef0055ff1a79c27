package results

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantiles(t *testing.T) {
	exact := func(ns int64) *Bound { return &Bound{NS: ns} }
	atLeast := func(ns int64) *Bound { return &Bound{NS: ns, AtLeast: true} }
	ones := func(values ...int64) Histogram {
		var bins Histogram
		for _, v := range values {
			bins = append(bins, Bin{v, 1})
		}
		return bins
	}
	for _, test := range []struct {
		name            string
		ended, censored Histogram
		entered         Histogram
		q               float64
		want            *Bound
	}{
		{"nothing", nil, nil, nil, 0.5, nil},
		{"one", ones(7), nil, nil, 0.99, exact(7)},
		{"nearest rank", ones(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), nil, nil, 0.9, exact(9)},
		{"just beyond", ones(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), nil, nil, 0.91, exact(10)},
		{"median of four", ones(1, 2, 3, 4), nil, nil, 0.5, exact(2)},
		// Kaplan and Meier: S is 3/4 after 1; one of the three is lost sight of at
		// 2; S is 3/4 · 1/2 after 3 and 0 after 4.
		{"censored between, below", ones(1, 3, 4), ones(2), nil, 0.6, exact(3)},
		{"censored between, above", ones(1, 3, 4), ones(2), nil, 0.63, exact(4)},
		{"a tie ends before it is censored", ones(2, 3), ones(2), nil, 0.5, exact(3)},
		{"all censored", nil, ones(5, 9), nil, 0.5, atLeast(9)},
		{"the tail is censored", ones(1, 1, 1), ones(100), nil, 0.9, atLeast(100)},
		{"below the censored tail", Histogram{{1, 3}}, ones(100), nil, 0.75, exact(1)},
		{"dropping the open wait would say 1", Histogram{{1, 98}}, Histogram{{1000, 2}}, nil, 0.99, atLeast(1000)},
		// Whoever is two old when the looking begins cannot be seen ending at 1: one of
		// two ends there, one of the other two at 3.
		{"entered late, below", ones(1, 3), ones(4, 5), ones(2), 0.55, exact(3)},
		{"entered late, above", ones(1, 3), ones(4, 5), ones(2), 0.56, atLeast(5)},
		{"entered late, from the beginning 1 ÷ 4", ones(1, 3), ones(4, 5), ones(2, 2), 0.5, exact(1)},
		{"an entry comes before an end at the same age", ones(3), ones(3), ones(3), 0.5, exact(3)},
		{"all at risk have ended, below", Histogram{{1, 3}, {7, 1}}, nil, ones(5), 0.75, exact(1)},
		{"all at risk have ended, but others are older", Histogram{{1, 3}, {7, 1}}, nil, ones(5), 0.76, exact(7)},
		{"nobody was seen young", ones(7, 9), nil, ones(5, 5), 0.5, exact(7)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := newCurve(test.ended, test.censored, test.entered).quantile(test.q)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("quantile %g: %s", test.q, diff)
			}
		})
	}
}
