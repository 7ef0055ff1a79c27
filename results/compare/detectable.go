package compare

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// power is the probability with which an effect as large as the printed minimum
// is found.
const power = 0.95

// efficiency is that of the signed-rank test against the t-test for normal
// differences, 3/π (Hodges and Lehmann, 1956).
const efficiency = 3 / math.Pi

// detectable is the smallest shift of paired log ratios that a test at this level
// finds with probability power, given how far these ratios scatter: it must be
// significant, for which it takes (t[1−α/2] + t[power]) standard errors, and its
// estimate must come out beyond the threshold (also a log ratio), for which it
// takes the threshold and t[power] standard errors. It is +Inf when so few pairs
// can never be significant.
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
