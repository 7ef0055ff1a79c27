package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// signedRank is the outcome of Wilcoxon's signed-rank test.
type signedRank struct {
	N     int     // differences that are not zero
	WPlus float64 // sum of the ranks of the positive ones
	P     float64 // two-sided, exact
}

// wilcoxon tests whether differences are equally likely to be positive and negative (Wilcoxon,
// Biometrics Bulletin 1, 1945). Zeros are left out; equal sizes share the mean of their ranks.
// p is exact for these ranks: the share of all assignments of signs that are at least as
// extreme. Without differences p is 1. Infinite differences rank as the largest.
func wilcoxon(differences []float64) signedRank {
	var sizes []float64
	signs := map[int]bool{} // by index of sizes: whether positive
	for _, d := range differences {
		if d != 0 {
			signs[len(sizes)] = d > 0
			sizes = append(sizes, math.Abs(d))
		}
	}
	result := signedRank{N: len(sizes), P: 1}
	if len(sizes) == 0 {
		return result
	}
	ranks := doubledRanks(sizes)
	plus := 0
	for i, rank := range ranks {
		if signs[i] {
			plus += rank
		}
	}
	result.WPlus = float64(plus) / 2
	below, above := 0.0, 0.0
	for sum, probability := range signedRankDistribution(ranks) {
		if sum <= plus {
			below += probability
		}
		if sum >= plus {
			above += probability
		}
	}
	result.P = min(1, 2*min(below, above))
	return result
}

// doubledRanks returns twice the ranks from 1, so that the mean of tied ranks is a whole number.
func doubledRanks(sizes []float64) []int {
	order := ascending(sizes)
	ranks := make([]int, len(sizes))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && sizes[order[to]] == sizes[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to // twice the mean of from+1 … to
		}
		from = to
	}
	return ranks
}

// ascending returns the indices of values from the smallest to the largest; equal ones keep their
// order.
func ascending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order
}

// signedRankDistribution returns the probability of each sum of the positive ranks if each sign is
// equally likely.
func signedRankDistribution(ranks []int) []float64 {
	total := 0
	for _, rank := range ranks {
		total += rank
	}
	probability := make([]float64, total+1)
	probability[0] = 1
	reached := 0
	for _, rank := range ranks {
		reached += rank
		for sum := reached; sum >= 0; sum-- {
			p := probability[sum] / 2
			if sum >= rank {
				p += probability[sum-rank] / 2
			}
			probability[sum] = p
		}
	}
	return probability
}

// leastP returns the smallest p that this many pairs can give.
func leastP(pairs int) float64 { return math.Pow(2, float64(1-pairs)) }

// center returns the Hodges–Lehmann estimate of the centre of the differences, the median of the
// means of all pairs, with the interval that the signed-rank test at this level does not
// reject (J. Am. Stat. Assoc. 58, 1963; Hollander and Wolfe, Nonparametric Statistical
// Methods, 3.2–3.3). ok is false if there are too few differences: below 6 at 95 %.
func center(differences []float64, alpha float64) (estimate, low, high float64, ok bool) {
	n := len(differences)
	var means []float64
	for i, a := range differences {
		for _, b := range differences[i:] {
			means = append(means, a/2+b/2)
		}
	}
	slices.Sort(means)
	estimate = results.Median(means)
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = 2 * (i + 1)
	}
	cumulated := 0.0
	for sum, probability := range signedRankDistribution(ranks) {
		cumulated += probability
		if cumulated < alpha/2 {
			continue
		}
		if sum == 0 {
			return estimate, 0, 0, false
		}
		rank := (sum + 1) / 2 // sums of doubled ranks are even
		return estimate, means[rank-1], means[len(means)-rank], true
	}
	return estimate, 0, 0, false
}
