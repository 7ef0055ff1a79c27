package trend

import (
	"math"
	"math/rand/v2"
	"slices"
)

// shuffle is a segment as a ring, cut anywhere into blocks of that length, of which the
// last may be shorter, in any order (C. Kirch, J. Stat. Plan. Inference 137, 2007, with
// the ring of Politis and Romano's circular blocks, 1992). Within a block neighbours stay
// neighbours, so that the shuffled series has the autocorrelation of the segment.
func shuffle(segment []float64, length int, random *rand.Rand) []float64 {
	if len(segment) == 0 {
		return nil
	}
	first := random.IntN(len(segment))
	ring := slices.Concat(segment[first:], segment[:first])
	blocks := slices.Collect(slices.Chunk(ring, length))
	random.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	return slices.Concat(blocks...)
}

// blockLength is that of circular blocks by Politis and White (Econometric Reviews 23,
// 2004, as corrected by Patton, Politis and White, 28, 2009), (2G²n ÷ D)^⅓ rounded up,
// which for a first-order autoregression is (6ρ²n ÷ (1−ρ²)²)^⅓. It is 1 without
// correlation, and otherwise half as long again: of the few blocks of a short
// history, shuffled series vary less than the truth does, and simulated histories of 24
// reports showed too many changes.
func blockLength(correlation float64, n int) int {
	root := margin * math.Cbrt(6*float64(n)) * math.Pow(correlation/(1-correlation*correlation), 2.0/3)
	return min(max(1, int(math.Ceil(root))), max(1, n))
}

const margin = 1.5 // of blockLength

// mostCorrelated keeps the length of blocks finite.
const mostCorrelated = 0.95

// autocorrelation is that of neighbours around the means of the segments, at least 0. The
// sample's comes out too small by (1+4ρ)÷n for every mean that is estimated (Kendall,
// Biometrika 41, 1954), which is added; once more because the segments were chosen
// so that little is left around their means.
func autocorrelation(values []float64, at []int) float64 {
	var rest []float64
	segments := cut(values, at)
	for _, segment := range segments {
		mean := 0.0 // from the first value on, so that equal values leave no rounding
		for _, v := range segment {
			mean += (v - segment[0]) / float64(len(segment))
		}
		for _, v := range segment {
			rest = append(rest, v-segment[0]-mean)
		}
	}
	together, square := 0.0, 0.0
	for i, v := range rest {
		square += v * v
		if i > 0 {
			together += v * rest[i-1]
		}
	}
	if square == 0 {
		return 0
	}
	correlation := together / square
	correlation += float64(len(segments)+1) * (1 + 4*correlation) / float64(len(values))
	return min(max(0, correlation), mostCorrelated)
}
