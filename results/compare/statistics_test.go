package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }

// These data are from tables 3.1 and 4.1 of Hollander and Wolfe, Nonparametric Statistical Methods. before and after
// are depression scores before and after a treatment. term and early are the permeabilities of two groups.
var (
	before = []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	after  = []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	term   = []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early  = []float64{1.15, 0.88, 0.90, 0.74, 1.21}
)

func TestWilcoxonPublishedExample(t *testing.T) {
	var differences []float64
	for i := range before {
		differences = append(differences, before[i]-after[i])
	}
	if p, plus := wilcoxon(differences); plus != 40 || !near(p, 2*0.01953125, 1e-12) {
		t.Errorf("got W+ %v, p %v, want 40, 0.0390625", plus, p)
	}
	o := paired(differences, 0.05)
	if !o.bounded || !near(o.change, 0.46, 1e-9) || !near(o.low, 0.010, 1e-9) || !near(o.high, 0.786, 1e-9) {
		t.Errorf("got %+v, want 0.46 (0.010 to 0.786)", o)
	}
}

func TestWilcoxonCriticalValues(t *testing.T) {
	// critical is the largest value of the smaller rank sum that is significant for n pairs at 5 %, two-sided.
	for n, critical := range map[int]int{
		6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 16: 29,
		17: 34, 18: 40, 19: 46, 20: 52, 25: 89,
	} {
		if p, _ := wilcoxon(withRankSum(n, critical)); p > 0.05 {
			t.Errorf("n %d, W %d: p %v", n, critical, p)
		}
		if p, _ := wilcoxon(withRankSum(n, critical+1)); p <= 0.05 {
			t.Errorf("n %d, W %d: p %v", n, critical+1, p)
		}
	}
	if p, _ := wilcoxon(withRankSum(5, 0)); p != leastPaired(5) || p != 0.0625 {
		t.Errorf("five of five: p %v, want 0.0625", p)
	}
}

// withRankSum returns the differences ±1 to ±n. Their signs are such that the positive ones add up to sum.
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
	// The expected p is twice a share of the 256 ways to assign signs to the ranks 2 2 2 4.5 4.5 6.5 6.5 8: the ways in
	// which the positive ranks add up to at least the observed sum.
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
	p, plus := wilcoxon(differences)
	if want := 2 * float64(as) / float64(ways); plus != positive || !near(p, want, 1e-12) {
		t.Errorf("got W+ %v, p %v, want p %v", plus, p, want)
	}
	if p, plus := wilcoxon([]float64{0, 0, 0}); p != 1 || plus != 0 {
		t.Errorf("no difference: W+ %v, p %v", plus, p)
	}
}

func TestIntervalNeedsSixPairs(t *testing.T) {
	six := []float64{6, 1, 2, 3, 4, 5}
	if o := paired(six, 0.05); !o.bounded || o.change != 3.5 || o.low != 1 || o.high != 6 {
		t.Errorf("of six pairs: %+v", o)
	}
	if paired(six[1:], 0.05).bounded || unpaired(six[1:], six, 0.05).bounded {
		t.Error("an interval of five")
	}
}

func TestTwoSampleIntervalIsExact(t *testing.T) {
	var differences []float64
	for _, a := range early {
		for _, b := range term {
			differences = append(differences, b-a)
		}
	}
	var o estimate
	o.bound(differences, float64(len(early)*len(term)*(len(early)+len(term)+1))/12, 0.05)
	if !o.bounded || !near(o.low, -0.15, 1e-9) || !near(o.high, 0.76, 1e-9) {
		t.Errorf("got %+v, want -0.15 to 0.76", o)
	}
	large := make([]float64, 60)
	for i := range large {
		large[i] = float64(i)
	}
	if o := unpaired(large, large, 0.05); !o.bounded || o.low != -o.high || o.high < 5 || o.high > 8 {
		t.Errorf("sixty against themselves: %+v", o)
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

// disturbed returns the log ratios of n pairs of random runs. scatter is the standard deviation of a run's log rate.
// One run in ten is slower by a random amount, at most by the log ratio most.
func disturbed(random *rand.Rand, n int, scatter, most float64) []float64 {
	run := func() float64 {
		x := scatter * random.NormFloat64()
		if random.IntN(10) == 0 {
			x -= most * random.Float64()
		}
		return x
	}
	ratios := make([]float64, n)
	for i := range ratios {
		ratios[i] = run() - run()
	}
	return ratios
}

// Each simulated session reports its smallest detectable change. At least the promised share of further sessions with
// the same noise must find a change of that size.
//
// A few sessions are sensitive only because they happen to scatter little. If more sessions are sensitive than that
// explains, at least the promised share of further sessions must also find a change as large as the threshold.
func TestDetectableKeepsItsPromise(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(20, 53))
	const rounds, alpha = 250, 0.05
	threshold := -math.Log1p(-0.05)
	called := func(ratios []float64, shift, least float64) bool {
		for i := range ratios {
			ratios[i] -= shift
		}
		o := paired(ratios, alpha)
		return o.p <= alpha && -o.change > least
	}
	for _, test := range []struct {
		n             int
		scatter, most float64
	}{
		{6, 0.03, 0},
		{6, 0.02, 0.2},
		{6, 0.04, 0.5},
		{8, 0.02, 0.5},
		{10, 0.03, 0.3},
		{14, 0.02, 0.2},
		{14, 0.04, 0.5},
		{28, 0.03, 0.2},
	} {
		found, sensitive, significantly := 0, 0, 0
		for range rounds {
			effect, significant, _ := detectable(ofPairs(disturbed(random, test.n, test.scatter, test.most)), test.n-1, alpha,
				threshold)
			fresh := disturbed(random, test.n, test.scatter, test.most)
			_, _, certain := detectable(ofPairs(fresh), test.n-1, alpha, threshold)
			if called(fresh, effect, certain) {
				found++
			}
			if significant <= threshold {
				sensitive++
				if called(disturbed(random, test.n, test.scatter, test.most), threshold, 0) {
					significantly++
				}
			}
		}
		share, passed := float64(found)/rounds, float64(sensitive)/rounds
		t.Logf("%+v: found %.2f, passed %.2f, of which significant %d of %d", test, share, passed, significantly, sensitive)
		if share < promised {
			t.Errorf("%+v: of the changes that a session says it would have detected, %.2f are, promised are %v",
				test, share, promised)
		}
		if often := float64(significantly) / float64(max(1, sensitive)); passed > 2*(1-known) && often < promised {
			t.Errorf("%+v: %.2f of the sessions pass as sensitive, and find a change of the threshold in %.2f of the cases",
				test, passed, often)
		}
	}
}

// The function enough proposes a number of pairs. With that number, about half of the sessions with the same scatter
// must be sensitive.
func TestNeededPairsAreSufficient(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(18, 2))
	const scatter, first, alpha = 0.05, 14, 0.05
	threshold, freedom := -math.Log1p(-0.05), func(pairs int) int { return pairs - 1 }
	error1 := scatter * math.Sqrt2 / math.Sqrt(efficiencyOfRanks*first)
	needed := enough(first, error1, freedom, alpha, threshold)
	if needed <= first || needed > 100 {
		t.Fatalf("%d pairs are enough", needed)
	}
	for pairs, want := range map[int][2]float64{first: {0, 0.1}, needed: {0.25, 0.75}, 2 * needed: {0.95, 1}} {
		const rounds = 60
		sensitive := 0.0
		for range rounds {
			_, significant, _ := detectable(ofPairs(disturbed(random, pairs, scatter, 0)), pairs-1, alpha, threshold)
			if significant <= threshold {
				sensitive++
			}
		}
		if share := sensitive / rounds; share < want[0] || share > want[1] {
			t.Errorf("of %d pairs %.2f of the sessions are sensitive, want %v", pairs, share, want)
		}
	}
	if most := enough(first, 10*scatter, freedom, alpha, threshold); most != mostNeeded {
		t.Errorf("ten times that scatter needs %d", most)
	}
}
