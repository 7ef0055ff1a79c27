package engine

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/workloads"
)

// stages reads them from their text form.
func stages(t *testing.T, text string) workloads.Stages {
	t.Helper()
	var all workloads.Stages
	for word := range strings.FieldsSeq(text) {
		var s workloads.Stage
		if err := s.UnmarshalText([]byte(word)); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// The expected arrivals between two instants are the area under the rate.
func TestStagesHaveTheirRate(t *testing.T) {
	const open = 5e9
	s := stagePacer{stages(t, "1s:100/s 2s:300/s 1s:0/s 1s:0/s 1s:200/s"), open}
	for _, test := range []struct{ at, arrivals, want float64 }{
		{-1, 50, -0.5},
		{-1, 150, 0.5},
		{0, 100, 1},
		{0, 100 + 400, 3},
		{0, 100 + 400 + 150, 4},     // nobody comes in the fifth second
		{4, 1, 5.1},                 // 200·t²/2 = 1
		{0, 650 + 100 + 200*3, 9.0}, // the last rate stays
	} {
		got := (s.Pace(open+test.at*1e9, test.arrivals) - open) / 1e9
		if math.Abs(got-test.want) > 1e-6 {
			t.Errorf("%g arrivals after %g s: at %g s, want %g", test.arrivals, test.at, got, test.want)
		}
	}
	if at := (stagePacer{stages(t, "1s:5/s 1s:0/s"), open}).Pace(open+2e9, 1); !math.IsInf(at, 1) {
		t.Errorf("an arrival after the last, at %g", at)
	}
	// Poisson: the counts of the second stage have its mean, and a variance alike.
	random := rand.New(rand.NewPCG(1, 1))
	const rounds = 2000
	var sum, squares float64
	for range rounds {
		n := 0.0
		for at := open; ; {
			if at = s.Pace(at, random.ExpFloat64()); at >= open+3e9 {
				break
			}
			if at >= open+1e9 {
				n++
			}
		}
		sum += n
		squares += n * n
	}
	mean := sum / rounds
	variance := squares/rounds - mean*mean
	if math.Abs(mean-400) > 3 || math.Abs(variance-400) > 60 {
		t.Errorf("mean %.1f, variance %.1f; want 400 each", mean, variance)
	}
}
