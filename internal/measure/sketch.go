package measure

import (
	"math"
	"math/bits"
)

// sketch is a small histogram of one client's waits: eight buckets an octave,
// from 64 ns to over an hour, so that a quantile is within 7 %. One for each of
// 100,000 clients fits where an HDR histogram each would not.
type sketch struct {
	counts [sketchBuckets]uint32
	total  uint64
}

const (
	sketchLowest  = 6  // 2^6 ns: shorter waits share the first bucket
	sketchHighest = 43 // 2^43 ns is 2.4 h: longer ones share the last
	sketchBuckets = 1 + (sketchHighest-sketchLowest)*8
)

// sketchBucket is the bucket of a duration.
func sketchBucket(ns int64) int {
	if ns < 1<<sketchLowest {
		return 0
	}
	octave := bits.Len64(uint64(ns)) - 1
	if octave >= sketchHighest {
		return sketchBuckets - 1
	}
	return 1 + (octave-sketchLowest)*8 + int(ns>>(octave-3))&7
}

// sketchValue is a bucket's middle.
func sketchValue(bucket int) int64 {
	if bucket == 0 {
		return 1 << (sketchLowest - 1)
	}
	octave, part := (bucket-1)/8+sketchLowest, int64((bucket-1)%8)
	return (2*(8+part) + 1) << (octave - 4)
}

func (s *sketch) record(ns int64) {
	b := sketchBucket(ns)
	if s.counts[b]++; s.counts[b] == 0 {
		s.halve(b)
	}
	s.total++
}

// halve makes room when a count has overflowed: only the shape matters, since
// every client weighs the same.
func (s *sketch) halve(overflowed int) {
	s.total = 0
	for i := range s.counts {
		s.counts[i] /= 2
		s.total += uint64(s.counts[i])
	}
	s.counts[overflowed] = 1 << 31
	s.total += 1 << 31
}

// quantile is the middle of the bucket that holds it; 0 without any.
func (s *sketch) quantile(q float64) int64 {
	rank := uint64(math.Ceil(q * float64(s.total)))
	var seen uint64
	for bucket, n := range s.counts {
		if seen += uint64(n); seen >= rank && seen > 0 {
			return sketchValue(bucket)
		}
	}
	return 0
}
