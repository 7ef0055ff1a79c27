package workloads

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func stages(t *testing.T, text string) Stages {
	t.Helper()
	var all Stages
	for word := range strings.FieldsSeq(text) {
		var s Stage
		if err := s.UnmarshalText([]byte(word)); err != nil {
			t.Fatal(err)
		}
		if s.String() != word {
			t.Errorf("%s reads as %v", word, s)
		}
		all = append(all, s)
	}
	return all
}

func TestStagesRefuseWhatIsNone(t *testing.T) {
	for _, text := range []string{"", "30s", "30s:", "x:5", "0s:5", "-1s:5", "1s:-5", "1s:5/x", "1s:-5/s", "1s:2.5"} {
		if err := new(Stage).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestStagesReachTheirLoads(t *testing.T) {
	s := stages(t, "10s:10 10s:110 10s:110 10s:10")
	for _, test := range []struct {
		at    time.Duration
		n     float64
		want  time.Duration
		never bool
	}{
		{at: -time.Second, n: 10, want: 0},
		{at: 3 * time.Second, n: 10, want: 3 * time.Second},
		{at: 0, n: 60, want: 15 * time.Second},
		{at: 0, n: 110, want: 20 * time.Second},
		{at: 25 * time.Second, n: 110, want: 25 * time.Second},
		{at: 36 * time.Second, n: 60, never: true},
		{at: 0, n: 111, never: true},
		{at: time.Hour, n: 10, want: time.Hour},
	} {
		at, ever := s.Reach(test.at, test.n)
		if ever == test.never || ever && (at-test.want).Abs() > time.Microsecond {
			t.Errorf("from %v on %g is reached at %v, %v; want %v", test.at, test.n, at, ever, test.want)
		}
	}
}

// The expected arrivals between two instants are the area under the rate.
func TestStagesArriveAtTheirRate(t *testing.T) {
	s := stages(t, "1s:100/s 2s:300/s 1s:0/s 1s:0/s 1s:200/s")
	for _, test := range []struct{ at, arrivals, want float64 }{
		{-1, 50, -0.5},
		{-1, 150, 0.5},
		{0, 100, 1},
		{0, 100 + 400, 3},
		{0, 100 + 400 + 150, 4},     // nobody comes in the fifth second
		{4, 1, 5.1},                 // 200·t²/2 = 1
		{0, 650 + 100 + 200*3, 9.0}, // the last rate stays
	} {
		got := s.After(test.at*1e9, test.arrivals) / 1e9
		if math.Abs(got-test.want) > 1e-6 {
			t.Errorf("%g arrivals after %g s: at %g s, want %g", test.arrivals, test.at, got, test.want)
		}
	}
	if at := stages(t, "1s:5/s 1s:0/s").After(2e9, 1); !math.IsInf(at, 1) {
		t.Errorf("an arrival after the last, at %g", at)
	}
	// Poisson: the counts of the second stage have its mean, and a variance alike.
	random := rand.New(rand.NewPCG(1, 1))
	const rounds = 2000
	var sum, squares float64
	for range rounds {
		n := 0.0
		for at := 0.0; ; {
			if at = s.After(at, random.ExpFloat64()); at >= 3e9 {
				break
			}
			if at >= 1e9 {
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

func TestStagesAreTheWindow(t *testing.T) {
	var d Draft
	if err := d.Give("stage", "1s:5,2s:50"); err != nil {
		t.Fatal(err)
	}
	if err := d.Give("stage", "1s:0"); err != nil {
		t.Fatal(err)
	}
	points, err := d.Points()
	if err != nil {
		t.Fatal(err)
	}
	w := points[0].Workload
	if err := w.Validate(); err != nil || w.Clients != 50 || time.Duration(w.Duration) != 4*time.Second {
		t.Errorf("%+v: %v", w, err)
	}
	w.Clients, w.Duration, w.Iterations, w.Rate = 10, 1, 5, 3
	err = w.Validate()
	for _, fault := range []string{"wants more than the 10 clients", "--duration is 1ns", "--iterations cannot", "of the other kind of loop"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q is not among the faults:\n%v", fault, err)
		}
	}
}
