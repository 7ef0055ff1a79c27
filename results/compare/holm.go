package compare

import (
	"cmp"
	"slices"
)

// holm adjusts the p-values of a family of tests so that rejecting those of at
// most alpha is wrong about any of them with at most that probability (Holm,
// Scandinavian Journal of Statistics 6, 1979). The order is kept.
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
