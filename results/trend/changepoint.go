package trend

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// leastSegment is the least number of values on either side of a change: fewer could be
	// outliers.
	leastSegment = 3
	// permutations is how often a segment is shuffled to estimate the effect of chance.
	permutations = 399
)

// changePoints returns the indices at which a series changes, in ascending order. It is
// E-divisive with means (Matteson and James, J. Am. Stat. Assoc. 109, 2014), which MongoDB
// and Apache Otava use for benchmarks. It shuffles blocks of neighbours instead of single
// values, because the values of a history are not independent. The same values give the same
// points.
func changePoints(values []float64, alpha float64) []int {
	// Remove the changes that a shuffle of single values finds before the correlation is
	// estimated: a step would count as correlation.
	steps := divide(values, 0, 1.0/(permutations+1))
	return divide(values, autocorrelation(values, steps), alpha)
}

// divide splits at the largest energy distance between two sides, if at most a share alpha of
// the shuffled series, with blocks shuffled within the present segments, has one as large.
// Then it splits the segments further.
func divide(values []float64, correlation, alpha float64) []int {
	random := rand.New(rand.NewPCG(uint64(len(values)), 0))
	var found []int
	for {
		segments := cut(values, found)
		at, distance := bestSplit(segments)
		if at < 0 || likely(segments, distance, correlation, alpha, random) {
			slices.Sort(found)
			return found
		}
		found = append(found, at)
	}
}

// cut divides values at these indices.
func cut(values []float64, at []int) [][]float64 {
	var segments [][]float64
	from := 0
	for _, to := range append(slices.Sorted(slices.Values(at)), len(values)) {
		segments = append(segments, values[from:to])
		from = to
	}
	return segments
}

// bestSplit returns the index in all values at which a segment splits best; −1 if all segments
// are too short.
func bestSplit(segments [][]float64) (at int, distance float64) {
	at, from := -1, 0
	for _, segment := range segments {
		if split, d := split(segment); split > 0 && (at < 0 || d > distance) {
			at, distance = from+split, d
		}
		from += len(segment)
	}
	return at, distance
}

// likely says whether the best split of more than a share alpha of the shuffled series is as
// good. It stops as soon as the answer is certain.
func likely(segments [][]float64, distance, correlation, alpha float64, random *rand.Rand) bool {
	shuffled := make([][]float64, len(segments))
	as := 1
	for range permutations {
		if float64(as)/(permutations+1) > alpha {
			return true
		}
		for i, segment := range segments {
			shuffled[i] = shuffle(segment, blockLength(correlation, len(segment)), random)
		}
		if _, d := bestSplit(shuffled); d >= distance {
			as++
		}
	}
	return float64(as)/(permutations+1) > alpha
}

// split returns where a segment changes most: the index with the largest energy distance
// mn÷(m+n) · (2·mean|x−y| − mean|x−x'| − mean|y−y'|) between the m values before it and the
// n values after it. n ends where the distance is largest, so that it also finds a change
// that was reverted later. at is 0 if the segment is too short.
func split(values []float64) (at int, distance float64) {
	n := len(values)
	if n < 2*leastSegment {
		return 0, 0
	}
	sums := distances(values)
	distance = math.Inf(-1)
	for end := 2 * leastSegment; end <= n; end++ {
		for to := leastSegment; to <= end-leastSegment; to++ {
			left, right := sums.within(0, to), sums.within(to, end)
			across := sums.within(0, end) - left - right
			m, k := float64(to), float64(end-to)
			energy := 2*across/(m*k) - 2*left/(m*(m-1)) - 2*right/(k*(k-1))
			if d := m * k / (m + k) * energy; d > distance {
				at, distance = to, d
			}
		}
	}
	return at, distance
}

// sums[i][j] is the sum of the distances |values[a] − values[b]| over all a < i, b < j.
type sums [][]float64

func distances(values []float64) sums {
	n := len(values)
	s := make(sums, n+1)
	s[0] = make([]float64, n+1)
	for i, a := range values {
		s[i+1] = make([]float64, n+1)
		row := 0.0
		for j, b := range values {
			row += math.Abs(a - b)
			s[i+1][j+1] = s[i][j+1] + row
		}
	}
	return s
}

// within returns the sum over all pairs of values in [from, to).
func (s sums) within(from, to int) float64 {
	return (s[to][to] - s[from][to] - s[to][from] + s[from][from]) / 2
}
