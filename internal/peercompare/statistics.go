package main

import (
	"math"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// interval is the median of some rounds' values and what it is certain to lie between.
type interval struct {
	median    float64
	low, high float64 // the rank-th smallest and largest; the extremes when rank is 0
	rank      int
	n         int
}

// doubt is the largest chance, on each side, that the true median lies beyond.
const doubt = 0.01

// rank is the largest k for which the true median of n independent values lies below
// the k-th smallest with a chance of at most 1 %: P(Bin(n, ½) < k) ≤ doubt, the sign
// test turned round. It is 2 for 11 rounds, 3 for 15, and 0 below 7.
func rank(n int) int {
	k, below, term := 0, 0.0, math.Pow(0.5, float64(n)) // term is P(Bin(n, ½) = k)
	for k < n {
		below += term
		if below > doubt {
			break
		}
		term *= float64(n-k) / float64(k+1)
		k++
	}
	return k
}

// summarise is the interval of values, which are not empty.
func summarise(values []float64) interval {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	i := interval{median: results.Median(sorted), rank: rank(n), n: n}
	at := max(i.rank-1, 0)
	i.low, i.high = sorted[at], sorted[n-1-at]
	return i
}
