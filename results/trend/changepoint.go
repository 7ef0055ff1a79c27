package trend

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// leastSegment is the number of values on either side of a change: fewer cannot
	// be told from outliers.
	leastSegment = 3
	// permutations is how many times a segment is shuffled to see what chance does.
	permutations = 399
)

// changePoints are the indices at which a series begins to be another, ascending:
// E-divisive with means (Matteson and James, J. Am. Stat. Assoc. 109, 2014), as
// MongoDB and Apache Otava use it on benchmarks, with blocks of neighbours in the
// place of single values, since the values of a history are not independent. The same
// values give the same points.
func changePoints(values []float64, alpha float64) []int {
	// What looks like a change when values are shuffled one by one is taken out before
	// their correlation is estimated: a step correlates whatever lies on its sides.
	steps := divide(values, 0, 1.0/(permutations+1))
	return divide(values, autocorrelation(values, steps), alpha)
}

// divide takes the split with the largest energy distance between its two sides, if
// shuffling blocks of values within the segments so far gives as large a one in a share
// of at most alpha; then it splits the segments further.
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

// bestSplit is the index in all values at which some segment splits best, −1 where
// all are too short.
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

// likely says whether the best split of more than a share of alpha of the shuffled series
// is as good. It stops shuffling when that is certain.
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

// split is where a segment changes most: the place with the largest energy distance
// mn÷(m+n) · (2·mean|x−y| − mean|x−x'| − mean|y−y'|) between the m values before it
// and the n behind it, up to wherever that is largest, so that a change that was
// taken back later is seen too. at is 0 where the segment is too short.
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

// sums are those of the distances |values[a] − values[b]| over all a < i, b < j.
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

// within is the sum over all pairs of the values from one index to another.
func (s sums) within(from, to int) float64 {
	return (s[to][to] - s[from][to] - s[to][from] + s[from][from]) / 2
}
