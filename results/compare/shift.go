package compare

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// shift returns the interval of the shift between two samples that the Mann–Whitney test at this
// level does not reject: differences in ascending order, counted in from both ends by the
// quantile of U (Hollander and Wolfe, Nonparametric Statistical Methods, 4.3). ok is false if
// there are too few values.
func shift(first, second []float64, alpha float64) (low, high float64, ok bool) {
	var differences []float64
	for _, a := range first {
		for _, b := range second {
			differences = append(differences, b-a)
		}
	}
	if len(differences) == 0 {
		return 0, 0, false
	}
	slices.Sort(differences)
	u := stats.UDist{N1: len(first), N2: len(second)}
	in := quantileOfU(u, alpha/2)
	if in == 0 {
		return 0, 0, false
	}
	return differences[in-1], differences[len(differences)-in], true
}

// exactU is the largest sample for which the distribution of U is computed; above it the normal
// approximation is as good.
const exactU = 50

// quantileOfU returns the smallest u with P(U ≤ u) ≥ probability; above exactU, approximately.
func quantileOfU(u stats.UDist, probability float64) int {
	pairs := float64(u.N1 * u.N2)
	if u.N1 > exactU || u.N2 > exactU {
		deviation := math.Sqrt(pairs * float64(u.N1+u.N2+1) / 12)
		return max(0, int(pairs/2+deviation*stats.InvCDF(stats.StdNormal)(probability)))
	}
	for at := 0; ; at++ {
		if u.CDF(float64(at)) >= probability {
			return at
		}
	}
}

// power is the probability of finding an effect of the printed minimum size.
const power = 0.95

// efficiency is the efficiency of the signed-rank test relative to the t-test for normal
// differences, 3/π (Hodges and Lehmann, 1956).
const efficiency = 3 / math.Pi

// detectable returns the smallest shift of paired log ratios that a test at this level finds
// with probability power, given the scatter of these ratios. The shift must be significant,
// which needs (t[1−α/2] + t[power]) standard errors. Its estimate must also exceed the
// threshold (a log ratio too), which needs the threshold and t[power] standard errors. It
// returns +Inf if so few pairs can never be significant.
func detectable(ratios []float64, alpha, threshold float64) float64 {
	n := len(ratios)
	if n < 2 || leastP(n) > alpha {
		return math.Inf(1)
	}
	quantile := stats.InvCDF(stats.TDist{V: float64(n - 1)})
	deviation := stats.StdDev(ratios)
	deviation /= math.Sqrt(efficiency * float64(n))
	found := quantile(power) * deviation
	return found + max(threshold, quantile(1-alpha/2)*deviation)
}
