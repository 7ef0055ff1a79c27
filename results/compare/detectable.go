package compare

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

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
