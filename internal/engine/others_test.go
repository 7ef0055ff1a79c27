package engine

import (
	"slices"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestOthersAreLabelledBeyondALimit(t *testing.T) {
	for _, test := range []struct {
		foreign, steal *float64
		want           []string
	}{
		{nil, nil, nil},
		{new(10.0), new(2.0), nil},
		{new(10.6), new(0.0), []string{"other CPU 11%"}},
		{new(0.0), new(2.25), []string{"steal 2.2%"}},
		{new(54.4), new(12.0), []string{"other CPU 54%", "steal 12.0%"}},
	} {
		got := othersLabels(results.Generator{OtherCPU: test.foreign, Steal: test.steal})
		if !slices.Equal(got, test.want) {
			t.Errorf("foreign %v, steal %v: %q, want %q", test.foreign, test.steal, got, test.want)
		}
		if hurried := (results.Run{Labels: got}).MachineBound(); hurried != (len(test.want) > 0) {
			t.Errorf("%q: hurried %v", got, hurried)
		}
	}
}

// CPU time that is not known, such as over a restart, is not 0.
func TestCPUTimeSpent(t *testing.T) {
	at := func(seconds float64) *results.Reading { return &results.Reading{CPU: &seconds} }
	for _, test := range []struct {
		name     string
		from, to *results.Reading
		want     float64
		known    bool
	}{
		{"two readings", at(1.5), at(4), 2.5, true},
		{"restarted", at(4), at(0.5), 0, false},
		{"no reading before", nil, at(1), 0, false},
		{"no reading after", at(1), nil, 0, false},
		{"without CPU time", &results.Reading{}, at(1), 0, false},
	} {
		if got, known := spent(test.from, test.to); got != test.want || known != test.known {
			t.Errorf("%s: %v, %v", test.name, got, known)
		}
	}
}
