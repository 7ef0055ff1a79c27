package measure

import "testing"

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
