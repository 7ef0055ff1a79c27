package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }

// Hollander and Wolfe, Nonparametric Statistical Methods, tables 3.1 and 4.1:
// depression scores before and after, and permeability of two groups.
var (
	before = []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	after  = []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	term   = []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early  = []float64{1.15, 0.88, 0.90, 0.74, 1.21}
)

func TestWilcoxonOfThePublishedExample(t *testing.T) {
	var differences []float64
	for i := range before {
		differences = append(differences, before[i]-after[i])
	}
	got := wilcoxon(differences)
	if got.N != 9 || got.WPlus != 40 || !near(got.P, 2*0.01953125, 1e-12) {
		t.Errorf("got %+v, want N 9, W+ 40, p 0.0390625", got)
	}
	estimate, low, high, ok := center(differences, 0.05)
	if !ok || !near(estimate, 0.46, 1e-9) || !near(low, 0.010, 1e-9) || !near(high, 0.786, 1e-9) {
		t.Errorf("got %v (%v to %v, %v), want 0.46 (0.010 to 0.786)", estimate, low, high, ok)
	}
}

func TestWilcoxonAgainstTheTableOfCriticalValues(t *testing.T) {
	// The largest smaller rank sum that is significant at 5 %, two-sided.
	for n, critical := range map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 16: 29, 17: 34, 18: 40, 19: 46, 20: 52, 25: 89} {
		if p := wilcoxon(withRankSum(n, critical)).P; p > 0.05 {
			t.Errorf("n %d, W %d: p %v", n, critical, p)
		}
		if p := wilcoxon(withRankSum(n, critical+1)).P; p <= 0.05 {
			t.Errorf("n %d, W %d: p %v", n, critical+1, p)
		}
	}
	if p := wilcoxon(withRankSum(5, 0)).P; p != leastP(5) || p != 0.0625 {
		t.Errorf("five of five: p %v, want 0.0625", p)
	}
}

// withRankSum are n differences whose positive ranks have that sum.
func withRankSum(n, sum int) []float64 {
	var differences []float64
	for rank := n; rank >= 1; rank-- {
		if rank <= sum {
			sum -= rank
			differences = append(differences, float64(rank))
		} else {
			differences = append(differences, -float64(rank))
		}
	}
	return differences
}

func TestWilcoxonIsExactWithTiesAndZeros(t *testing.T) {
	differences := []float64{0, 1, 1, -1, 2, 0, 2, math.Inf(1), 3, -3}
	// By hand: ranks 2 2 2 4.5 4.5 6.5 6.5 8 and every way to sign them.
	ranks := []float64{2, 2, 2, 4.5, 4.5, 8, 6.5, 6.5}
	const positive = 2 + 2 + 4.5 + 4.5 + 8 + 6.5
	as, ways := 0, 1<<len(ranks)
	for signs := range ways {
		sum := 0.0
		for i, rank := range ranks {
			if signs>>i&1 == 1 {
				sum += rank
			}
		}
		if sum >= positive {
			as++
		}
	}
	got := wilcoxon(differences)
	if want := 2 * float64(as) / float64(ways); got.N != 8 || got.WPlus != positive || !near(got.P, want, 1e-12) {
		t.Errorf("got %+v, want p %v", got, want)
	}
	if got := wilcoxon([]float64{0, 0, 0}); got.P != 1 || got.N != 0 {
		t.Errorf("no difference: %+v", got)
	}
}

func TestCenterNeedsSixForAnInterval(t *testing.T) {
	if _, _, _, ok := center([]float64{1, 2, 3, 4, 5}, 0.05); ok {
		t.Error("an interval of five differences")
	}
	estimate, low, high, ok := center([]float64{6, 1, 2, 3, 4, 5}, 0.05)
	if !ok || estimate != 3.5 || low != 1 || high != 6 {
		t.Errorf("got %v, %v to %v, %v", estimate, low, high, ok)
	}
}

func TestShiftOfThePublishedExample(t *testing.T) {
	low, high, ok := shift(early, term, 0.05)
	if !ok || !near(low, -0.15, 1e-9) || !near(high, 0.76, 1e-9) {
		t.Errorf("got %v to %v, %v, want -0.15 to 0.76", low, high, ok)
	}
	if _, _, ok := shift(early[:3], term[:3], 0.05); ok {
		t.Error("an interval of three against three")
	}
	large := make([]float64, 60)
	for i := range large {
		large[i] = float64(i)
	}
	if low, high, ok := shift(large, large, 0.05); !ok || low != -high || high < 5 || high > 8 {
		t.Errorf("sixty against themselves: %v to %v, %v", low, high, ok)
	}
}

func TestHolm(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} { // R's p.adjust
		if !near(got[i], want, 1e-12) {
			t.Errorf("%d: got %v, want %v", i, got[i], want)
		}
	}
	if len(holm(nil)) != 0 || !slices.Equal(holm([]float64{0.9, 0.8}), []float64{1, 1}) {
		t.Error("none, or more than 1")
	}
}

// The printed effect is found about as often as it says: 95 % of the time over all
// samples of a known scatter.
func TestDetectableKeepsItsPromise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const rounds, pairs, scatter, threshold = 2000, 12, 0.04, 0.03
	draw := func(shift float64) []float64 {
		ratios := make([]float64, pairs)
		for i := range ratios {
			ratios[i] = shift + scatter*random.NormFloat64()
		}
		return ratios
	}
	found := 0
	for range rounds {
		effect := detectable(draw(0), 0.05, threshold)
		ratios := draw(effect)
		if estimate, _, _, _ := center(ratios, 0.05); estimate > threshold && wilcoxon(ratios).P <= 0.05 {
			found++
		}
	}
	if share := float64(found) / rounds; share < 0.90 || share > 0.99 {
		t.Errorf("found %.3f of the effects it says it can", share)
	}
	if !math.IsInf(detectable(draw(0)[:5], 0.05, threshold), 1) {
		t.Error("five pairs can be significant")
	}
}

// Equal builds are called worse by the primary metric in at most 2.5 %, and by any
// of the others in at most 2.5 %.
func TestFamilyKeepsItsLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const rounds, pairs, metrics = 1000, 12, 15
	alarms := 0
	for range rounds {
		var family []*test
		for range metrics {
			var ratios []float64
			for range pairs {
				ratios = append(ratios, 0.1*random.NormFloat64())
			}
			found := centered(ratios, 0.05)
			family = append(family, &test{Result: Result{Higher: random.IntN(2) == 0}, least: found, most: found, possible: leastP(pairs)})
		}
		adjust(family, 0.05)
		if slices.ContainsFunc(family, func(one *test) bool { return one.Verdict == Worse }) {
			alarms++
		}
	}
	if share := float64(alarms) / rounds; share > 0.04 {
		t.Errorf("%.3f of the families of equal builds have one called worse", share)
	}
}
