package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
)

func exactly(ns int64) *results.Bound { return &results.Bound{NS: ns} }
func atLeast(ns int64) *results.Bound { return &results.Bound{NS: ns, AtLeast: true} }

func TestQuantiles(t *testing.T) {
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
		want            *results.Bound
	}{
		{"nothing", nil, nil, 0.5, nil},
		{"one", ones(7), nil, 0.99, exactly(7)},
		{"nearest rank", ones(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), nil, 0.9, exactly(9)},
		{"just beyond", ones(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), nil, 0.91, exactly(10)},
		{"median of four", ones(1, 2, 3, 4), nil, 0.5, exactly(2)},
		// Kaplan and Meier: S is 3/4 after 1; one of the three is lost sight of at
		// 2; S is 3/4 · 1/2 after 3 and 0 after 4.
		{"censored between, below", ones(1, 3, 4), ones(2), 0.6, exactly(3)},
		{"censored between, above", ones(1, 3, 4), ones(2), 0.63, exactly(4)},
		{"a tie ends before it is censored", ones(2, 3), ones(2), 0.5, exactly(3)},
		{"all censored", nil, ones(5, 9), 0.5, atLeast(9)},
		{"the tail is censored", ones(1, 1, 1), ones(100), 0.9, atLeast(100)},
		{"below the censored tail", []bin{{1, 3}}, ones(100), 0.75, exactly(1)},
		{"dropping the open wait would say 1", []bin{{1, 98}}, []bin{{1000, 2}}, 0.99, atLeast(1000)},
		{"weights", []bin{{1, 0.5}, {2, 0.5}}, nil, 0.5, exactly(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := newSurvival(test.ended, test.censored).quantile(test.q)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("quantile %g: %s", test.q, diff)
			}
		})
	}
}

func TestSketchBuckets(t *testing.T) {
	for _, ns := range []int64{0, 1, 63, 64, 65, 100, 1000, 12345, 1e6, 987654321, 3.6e12, 1 << 43, 1 << 62} {
		bucket := sketchBucket(ns)
		if bucket < 0 || bucket >= sketchBuckets {
			t.Fatalf("%d ns: bucket %d of %d", ns, bucket, sketchBuckets)
		}
		if ns < 64 || ns >= 1<<sketchHighest {
			continue
		}
		if off := float64(sketchValue(bucket)-ns) / float64(ns); off > 0.07 || off < -0.07 {
			t.Errorf("%d ns reads back as %d, %.1f %% off", ns, sketchValue(bucket), off*100)
		}
	}
	last := -1
	for ns := int64(1); ns < 1<<44; ns += ns/16 + 1 {
		if b := sketchBucket(ns); b < last {
			t.Fatalf("%d ns: bucket %d after %d", ns, b, last)
		} else {
			last = b
		}
	}
}

func TestSketchKeepsItsShapeWhenACountOverflows(t *testing.T) {
	var s sketch
	const short, long = 1000, 1_000_000
	s.counts[sketchBucket(short)] = 1<<32 - 1
	s.counts[sketchBucket(long)] = 1 << 30
	s.record(short)
	ratio := float64(s.counts[sketchBucket(short)]) / float64(s.counts[sketchBucket(long)])
	if ratio < 3.99 || ratio > 4.01 {
		t.Errorf("short to long is %.3f, was 4", ratio)
	}
	if want := uint64(s.counts[sketchBucket(short)]) + uint64(s.counts[sketchBucket(long)]); s.total < want || s.total > want+1 {
		t.Errorf("total %d, counts sum to %d", s.total, want)
	}
}
