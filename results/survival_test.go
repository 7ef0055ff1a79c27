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
		name        string
		ended, open Histogram
		entered     Histogram
		q           float64
		want        *Bound
	}{
		{"nothing", nil, nil, nil, 0.5, nil},
		{"one", ones(7), nil, nil, 0.99, exact(7)},
		{"nearest rank", ones(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), nil, nil, 0.9, exact(9)},
		{"just beyond", ones(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), nil, nil, 0.91, exact(10)},
		{"median of four", ones(1, 2, 3, 4), nil, nil, 0.5, exact(2)},
		// By Kaplan and Meier, S is 3/4 after age 1. One of the remaining three is censored at 2. So S is 3/4 · 1/2 after 3,
		// and 0 after 4.
		{"censored between, below", ones(1, 3, 4), ones(2), nil, 0.6, exact(3)},
		{"censored between, above", ones(1, 3, 4), ones(2), nil, 0.63, exact(4)},
		{"a tie ends before it is censored", ones(2, 3), ones(2), nil, 0.5, exact(3)},
		{"all censored", nil, ones(5, 9), nil, 0.5, atLeast(9)},
		{"the tail is censored", ones(1, 1, 1), ones(100), nil, 0.9, atLeast(100)},
		{"below the censored tail", Histogram{{1, 3}}, ones(100), nil, 0.75, exact(1)},
		{"dropping the open wait would say 1", Histogram{{1, 98}}, Histogram{{1000, 2}}, nil, 0.99, atLeast(1000)},
		// A duration that enters at age 2 is not at risk at age 1. So one of the three at risk ends at 1, and one of three at
		// 3: S is 2/3 · 2/3 after 3.
		{"entered late, below", ones(1, 3), ones(4, 5), ones(2), 0.55, exact(3)},
		{"entered late, above", ones(1, 3), ones(4, 5), ones(2), 0.56, atLeast(5)},
		{"entered late, from the beginning 1 ÷ 4", ones(1, 3), ones(4, 5), ones(2, 2), 0.5, exact(1)},
		{"an entry comes before an end at the same age", ones(3), ones(3), ones(3), 0.5, exact(3)},
		{"all at risk have ended, below", Histogram{{1, 3}, {7, 1}}, nil, ones(5), 0.75, exact(1)},
		{"all at risk have ended, but others are older", Histogram{{1, 3}, {7, 1}}, nil, ones(5), 0.76, exact(7)},
		{"no duration was seen young", ones(7, 9), nil, ones(5, 5), 0.5, exact(7)},
		// Only one of a hundred durations was observed beyond 5. The curve must end there, because this one duration would
		// decide the estimate for all.
		{"nearly all were lost sight of", ones(9), Histogram{{5, 99}}, nil, 0.5, atLeast(5)},
		{"nearly all were lost sight of, and none ended", nil, Histogram{{5, 99}, {9, 1}}, nil, 0.5, atLeast(5)},
		{"one in ten was not", Histogram{{9, 10}}, Histogram{{5, 90}}, nil, 0.5, exact(9)},
		{"there was only one in the end", Histogram{{1, 99}, {9, 1}}, nil, nil, 0.999, exact(9)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Estimate(Observations{Ended: test.ended, Open: test.open, Entered: test.entered}, nil).Quantile(test.q)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("quantile %g: %s", test.q, diff)
			}
		})
	}
}

// A wait that timed out would have got the lease later or never. A quantile that depends on such waits must be a lower
// bound.
func TestQuantilesOfTimedOutWaits(t *testing.T) {
	exact := func(ns int64) *Bound { return &Bound{NS: ns} }
	atLeast := func(ns int64) *Bound { return &Bound{NS: ns, AtLeast: true} }
	// Of a hundred waits, 63 end before the timeout of 300, 36 are given up at the timeout, and one gets a lease after it.
	timeout := Observations{Ended: Histogram{{100, 63}, {450, 1}}, GaveUp: Histogram{{300, 36}}}
	try := Observations{Ended: Histogram{{100, 20}}, GaveUp: Histogram{{90, 40}, {110, 40}}}
	late := Observations{Ended: Histogram{{100, 40}, {2000, 50}}, GaveUp: Histogram{{2000, 10}}}
	few := Observations{Ended: Histogram{{100, 950}, {2000, 49}}, GaveUp: Histogram{{50, 1}}}
	for _, test := range []struct {
		name string
		o    Observations
		rest *Rest
		q    float64
		want *Bound
	}{
		{"below the timeout", timeout, nil, 0.63, exact(100)},
		{"at the timeout", timeout, nil, 0.64, atLeast(300)},
		{"a single lease after it says nothing", timeout, nil, 0.99, atLeast(300)},
		{"but that it lasted so long", timeout, nil, 0.999, atLeast(450)},
		{"all were given up", Observations{GaveUp: Histogram{{300, 9}}}, nil, 0.5, atLeast(300)},
		{"tries, most of which found the lock held", try, nil, 0.1, atLeast(90)},
		{"tries, beyond those that got it", try, nil, 0.5, atLeast(100)},
		{"a lock that ends waits long after the timeout, below", late, nil, 0.9, exact(2000)},
		{"a lock that ends waits long after the timeout, above", late, nil, 0.91, atLeast(2000)},
		{"one of a thousand moves no percentile", few, nil, 0.5, exact(100)},
		{"but near the next longer wait it does", few, nil, 0.9505, atLeast(100)},
		// Three of ten clients had no acquisition in a window of 5000. So every quantile above 0.7 is at least as long as
		// their waits have lasted.
		{
			"starved clients have the weight of others",
			Observations{Ended: Histogram{{100, 7 * 4000}}},
			&Rest{
				Histogram: Histogram{{100, 7 * 1000}}, CensoredHistogram: Histogram{{6000, 3 * 5000}},
				StarvedHistogram: Histogram{{6000, 3 * 5000}},
			}, 0.8, atLeast(6000),
		},
		{
			"each with its age",
			Observations{Ended: Histogram{{100, 7 * 4000}}},
			&Rest{
				Histogram: Histogram{{100, 7 * 1000}}, CensoredHistogram: Histogram{{6000, 2 * 5000}, {8000, 5000}},
				StarvedHistogram: Histogram{{6000, 2 * 5000}, {8000, 5000}},
			}, 0.95, atLeast(8000),
		},
		{
			"below them nothing is known exactly if the others waited for longer",
			Observations{Ended: Histogram{{7000, 7 * 4000}}},
			&Rest{
				Histogram: Histogram{{7000, 7 * 1000}}, CensoredHistogram: Histogram{{6000, 3 * 5000}},
				StarvedHistogram: Histogram{{6000, 3 * 5000}},
			}, 0.8, atLeast(7000),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, estimate(test.o, test.rest, nil).Quantile(test.q)); diff != "" {
				t.Errorf("quantile %g: %s", test.q, diff)
			}
		})
	}
}
