package trend

import (
	"math"
	"math/rand/v2"
	"slices"
)

// shuffle cuts a segment, closed to a ring, at a random place into blocks of this length (the
// last may be shorter) and shuffles the blocks (C. Kirch, J. Stat. Plan. Inference 137, 2007,
// with the ring of the circular blocks of Politis and Romano, 1992). Within a block the order
// stays, so the shuffled series keeps the autocorrelation of the segment.
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

// blockLength is the length of circular blocks by Politis and White (Econometric Reviews 23,
// 2004, as corrected by Patton, Politis and White, 28, 2009), (2G²n ÷ D)^⅓ rounded up. For a
// first-order autoregression that is (6ρ²n ÷ (1−ρ²)²)^⅓. It is 1 without correlation.
// Otherwise it is multiplied by margin: shuffled series of few blocks vary too little, and
// simulated histories of 24 reports showed too many changes.
func blockLength(correlation float64, n int) int {
	root := margin * math.Cbrt(6*float64(n)) * math.Pow(correlation/(1-correlation*correlation), 2.0/3)
	return min(max(1, int(math.Ceil(root))), max(1, n))
}

const margin = 1.5 // factor of blockLength

// mostCorrelated limits the correlation, so that blocks have a finite length.
const mostCorrelated = 0.95

// autocorrelation is that of neighbouring values around the means of their segments, at least
// 0. The estimate is too small by (1+4ρ)÷n for every estimated mean (Kendall, Biometrika 41,
// 1954), which is added; and once more, because the segments were chosen to leave little
// variation around their means.
func autocorrelation(values []float64, at []int) float64 {
	var rest []float64
	segments := cut(values, at)
	for _, segment := range segments {
		mean := 0.0 // relative to the first value, so that equal values give no rounding errors
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
