package compare

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"

	"github.com/lockbench/lockbench/results"
)

const (
	// leastToDetect is the smallest number of sessions per side with which the U test can be significant at 5 %.
	leastToDetect = 4
	// leastToBound is the smallest number of sessions per side, or of pairs, for which an interval is computed.
	leastToBound = 6
	// promised is the share of sessions that must find a change as large as the printed smallest detectable change, even
	// if one run in ten is disturbed. detectable computes with power, which is a little higher, to leave a margin.
	promised, power = 0.8, 0.9
	// known is the level of the upper confidence limit of the scatter. The smallest detectable change is computed from
	// this limit, because a few pairs often scatter little by chance.
	known = 0.95
	// efficiencyOfRanks and efficiencyOfMedian are the efficiencies of the signed-rank test, 3/π, and of the median, 2/π,
	// relative to the t-test and the mean for normal differences (Hodges and Lehmann, 1956).
	efficiencyOfRanks  = 3 / math.Pi
	efficiencyOfMedian = 2 / math.Pi
)

// estimate is the estimated change of one metric with its interval and p-value, computed as if every value were exact.
type estimate struct {
	change    float64 // log of head ÷ base, which may be infinite
	low, high float64 // interval of change at 1 − alpha
	bounded   bool    // low and high are set
	p         float64
}

// paired returns the result of Wilcoxon's signed-rank test for log ratios, with the Hodges–Lehmann estimate of their
// centre: the median of the means of all pairs of ratios (J. Am. Stat. Assoc. 58, 1963).
func paired(ratios []float64, alpha float64) estimate {
	var means []float64
	for i, a := range ratios {
		for _, b := range ratios[i:] {
			means = append(means, a/2+b/2)
		}
	}
	n := float64(len(ratios))
	p, _ := wilcoxon(ratios)
	o := estimate{change: results.Median(means), p: p}
	if len(ratios) >= leastToBound {
		o.bound(means, n*(n+1)*(2*n+1)/24, alpha)
	}
	return o
}

// unpaired returns the result of the U test for two samples of logarithms, with the difference of their medians. With
// fewer than leastToDetect sessions on a side, it returns only the difference.
func unpaired(base, head []float64, alpha float64) estimate {
	o := estimate{change: results.Median(head) - results.Median(base), p: 1}
	fewer := min(len(base), len(head))
	if fewer < leastToDetect {
		return o
	}
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: alpha})
	}
	o.p = benchmath.AssumeNothing.Compare(sample(base), sample(head)).P
	if fewer < leastToBound {
		return o
	}
	var differences []float64
	for _, a := range base {
		for _, b := range head {
			differences = append(differences, b-a)
		}
	}
	o.bound(differences, float64(len(base)*len(head)*(len(base)+len(head)+1))/12, alpha)
	return o
}

// bound sets the interval of all shifts that the rank test does not reject at the level alpha. Its ends are the k-th
// smallest and the k-th largest estimate, where k follows from the quantile of the test's statistic. The quantile is
// that of the normal distribution, rounded (Hollander and Wolfe, Nonparametric Statistical Methods, 3.3 and 4.3). From
// 6 values on, the rounded quantile differs from the exact one by at most 1.
func (o *estimate) bound(estimates []float64, variance, alpha float64) {
	slices.Sort(estimates)
	n := len(estimates)
	in := math.Round(float64(n)/2 + math.Sqrt(variance)*stats.InvCDF(stats.StdNormal)(alpha/2))
	if in >= 1 {
		o.low, o.high, o.bounded = estimates[int(in)-1], estimates[n-int(in)], true
	}
}

// wilcoxon is the two-sided test of whether differences are equally likely to be positive and negative (Wilcoxon,
// Biometrics Bulletin 1, 1945). Zeros are left out; differences of equal size share the mean of their ranks. p is exact
// for these ranks: the share of all assignments of signs that are at least as extreme. Without differences p is 1.
// Infinite differences rank as the largest. plus is the sum of the ranks of the positive differences.
func wilcoxon(differences []float64) (p, plus float64) {
	var doubled []int // twice the ranks, so that the mean of equal ranks is a whole number
	sum, positive := 0, 0
	for _, d := range differences {
		rank := 1
		for _, other := range differences {
			switch size := math.Abs(other); {
			case other == 0:
			case size < math.Abs(d):
				rank += 2
			case size == math.Abs(d):
				rank++
			}
		}
		if d != 0 {
			doubled = append(doubled, rank)
			sum += rank
		}
		if d > 0 {
			positive += rank
		}
	}
	probability := make([]float64, sum+1) // of each sum of positive ranks
	probability[0] = 1
	for _, rank := range doubled {
		for at := sum; at >= 0; at-- {
			probability[at] /= 2
			if at >= rank {
				probability[at] += probability[at-rank] / 2
			}
		}
	}
	below, above := 0.0, 0.0
	for at, share := range probability {
		if at <= positive {
			below += share
		}
		if at >= positive {
			above += share
		}
	}
	return min(1, 2*min(below, above)), float64(positive) / 2
}

// leastPaired returns the smallest p that this many pairs can give.
func leastPaired(pairs int) float64 { return math.Pow(2, float64(1-pairs)) }

// leastUnpaired returns the smallest p that the U test can give for samples of these sizes: 2 ÷ the
// number of ways to choose the first sample.
func leastUnpaired(first, second int) float64 {
	if min(first, second) < leastToDetect {
		return 1
	}
	return 2 / mathx.Choose(first+second, first)
}

// detectable returns three sizes of a shift of the log ratio, given the standard error of its estimate, the degrees of
// freedom and the threshold (also a log ratio). "Upper limit" below means the upper 95 % confidence limit of the
// standard error.
//
//   - significant: a true shift of this size is significant at the level alpha with probability power. It is z[power] +
//     t[1−α/2] times the upper limit.
//   - certain: a measured shift of at least this size counts. It is the larger of the threshold and z[power] + t[1−α/2]
//     times the measured standard error.
//   - found: a true shift of this size counts with probability power. It is the larger of the threshold and
//     significant, plus z[power] times the upper limit.
func detectable(deviation float64, freedom int, alpha, threshold float64) (found, significant, certain float64) {
	limit, margin := deviation*upper(freedom), stats.InvCDF(stats.StdNormal)(power)
	errors := margin + stats.InvCDF(stats.TDist{V: float64(freedom)})(1-alpha/2)
	significant = errors * limit
	return max(threshold, significant) + margin*limit, significant, max(threshold, errors*deviation)
}

// upper returns the ratio of the upper confidence limit of a standard deviation, at the level known, to its estimate
// with these degrees of freedom. It uses the approximation of the χ² quantile by Wilson and Hilferty (Proc. Natl. Acad.
// Sci. 17, 1931).
func upper(freedom int) float64 {
	n := float64(freedom)
	part := 1 - 2/(9*n) + stats.InvCDF(stats.StdNormal)(1-known)*math.Sqrt(2/(9*n))
	return math.Pow(max(part, 0.1), -1.5)
}

// enough returns the number of pairs, or of sessions per side, with which a change as large as the threshold would be
// significant, if further pairs or sessions scatter like the n present ones. It returns at most mostNeeded. freedom
// returns the degrees of freedom for a number of pairs or sessions.
func enough(n int, deviation float64, freedom func(int) int, alpha, threshold float64) int {
	return n + 1 + sort.Search(max(0, mostNeeded-n-1), func(i int) bool {
		more := n + 1 + i
		_, significant, _ := detectable(deviation*math.Sqrt(float64(n)/float64(more)), freedom(more), alpha, threshold)
		return significant <= threshold
	})
}

// mostNeeded limits the number of pairs or sessions that a message proposes. If that many would be needed, the message
// asks for longer runs or a quieter machine instead.
const mostNeeded = 1000

// ofPairs returns the standard error of the Hodges–Lehmann estimate of paired log ratios.
func ofPairs(ratios []float64) float64 {
	return stats.StdDev(ratios) / math.Sqrt(efficiencyOfRanks*float64(len(ratios)))
}

// ofTwo returns the standard error of the difference of two samples' medians.
func ofTwo(base, head []float64) float64 {
	variance := stats.Variance(base)/float64(len(base)) + stats.Variance(head)/float64(len(head))
	return math.Sqrt(variance / efficiencyOfMedian)
}

// holm adjusts the p-values of a family of tests. If the hypotheses with an adjusted p of at most alpha are rejected,
// the probability of any wrong rejection is at most alpha (Holm, Scandinavian Journal of Statistics 6, 1979). The
// result has the order of ps.
func holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	adjusted := make([]float64, len(ps))
	largest := 0.0
	for rank, i := range order {
		largest = max(largest, min(1, ps[i]*float64(len(ps)-rank)))
		adjusted[i] = largest
	}
	return adjusted
}
