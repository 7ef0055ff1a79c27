package compare

import (
	"cmp"
	"slices"
)

// holm adjusts the p-values of a family of tests. If those of at most alpha are rejected, the
// probability of any wrong rejection is at most alpha (Holm, Scandinavian Journal of
// Statistics 6, 1979). It keeps the order.
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
