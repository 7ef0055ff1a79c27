package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// levels is a series that stays at each level for so many values.
func levels(random *rand.Rand, scatter float64, each int, at ...float64) []float64 {
	var values []float64
	for _, level := range at {
		for range each {
			values = append(values, level+scatter*random.NormFloat64())
		}
	}
	return values
}

func TestChangePointsAreFoundWhereTheyAre(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for i, test := range []struct {
		values []float64
		want   []int
	}{
		{nil, nil},
		{[]float64{1, 1, 9, 9}, nil}, // too short to tell
		{levels(random, 1, 20, 100, 110), []int{20}},
		{levels(random, 1, 10, 100, 110, 100), []int{10, 20}},
		{levels(random, 1, 8, 100, 90, 80, 95), []int{8, 16, 24}},
		{levels(random, 0, 15, 4, 5), []int{15}},
		{levels(random, 0, 30, 7), nil},
		{append(levels(random, 1, 15, 100), append([]float64{300}, levels(random, 1, 15, 100)...)...), nil}, // an outlier
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			got := changePoints(test.values, 0.01)
			if len(got) != len(test.want) || slices.ContainsFunc(got, func(at int) bool {
				return !slices.ContainsFunc(test.want, func(want int) bool { return math.Abs(float64(at-want)) <= 1 })
			}) {
				t.Errorf("changes at %v, want %v", got, test.want)
			}
		})
	}
}

func TestNoiseHasFewChangePoints(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	const series = 300
	found := 0
	for range series {
		if len(changePoints(levels(random, 1, 24, 100), 0.05)) > 0 {
			found++
		}
	}
	// 5 % and three standard deviations.
	if share := float64(found) / series; share > 0.05+3*0.0126 {
		t.Errorf("%.3f of the series of mere noise change", share)
	}
}

// The sums of the matrix are those of the definition.
func TestSplitByDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	values := levels(random, 2, 6, 1, 3)
	mean := func(a, b []float64, within bool) float64 {
		sum, n := 0.0, 0.0
		for i, x := range a {
			for j, y := range b {
				if !within || i != j {
					sum += math.Abs(x - y)
					n++
				}
			}
		}
		return sum / n
	}
	at, best := 0, math.Inf(-1)
	for end := range len(values) + 1 {
		for to := leastSegment; to <= end-leastSegment; to++ {
			a, b := values[:to], values[to:end]
			m, k := float64(len(a)), float64(len(b))
			if d := m * k / (m + k) * (2*mean(a, b, false) - mean(a, a, true) - mean(b, b, true)); d > best {
				at, best = to, d
			}
		}
	}
	if gotAt, got := split(values); gotAt != at || math.Abs(got-best) > 1e-9 {
		t.Errorf("split at %d with %v, by definition %d with %v", gotAt, got, at, best)
	}
}
