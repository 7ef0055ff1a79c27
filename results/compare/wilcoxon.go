package compare

import (
	"math"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// signedRank is the outcome of Wilcoxon's signed-rank test.
type signedRank struct {
	N     int     // differences that are not zero
	WPlus float64 // sum of the ranks of the positive ones
	P     float64 // two-sided and exact
}

// wilcoxon tests whether differences are as likely up as down (Wilcoxon, Biometrics
// Bulletin 1, 1945). Zeros are left out, equal sizes share the mean of their
// ranks, and p is exact for the ranks at hand: what share of all ways to give
// them signs is as far out. Without a difference p is 1. Infinite differences are
// ranked as the largest.
func wilcoxon(differences []float64) signedRank {
	var sizes []float64
	signs := map[int]bool{} // of sizes, by index: positive
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

// doubledRanks are the ranks from 1, twice over so that the mean of tied ranks is
// a whole number.
func doubledRanks(sizes []float64) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case sizes[a] < sizes[b]:
			return -1
		case sizes[a] > sizes[b]:
			return 1
		}
		return 0
	})
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

// signedRankDistribution is the probability of each sum of those ranks that are
// positive when every sign is a fair coin's.
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

// leastP is the smallest p that so many pairs can give.
func leastP(pairs int) float64 { return math.Pow(2, float64(1-pairs)) }

// center is the Hodges–Lehmann estimate of what the differences are centred on,
// the median of all means of two of them, with the interval that the signed-rank
// test at this level does not reject (J. Am. Stat. Assoc. 58, 1963; Hollander and
// Wolfe, Nonparametric Statistical Methods, 3.2–3.3). ok is false where there are
// too few differences for an interval of that level: below 6 at 95 %.
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
