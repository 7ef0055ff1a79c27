//go:build !race

package trend

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// correlated is a history of one rate around 800/s whose noise has that standard
// deviation, as a share of it, and that autocorrelation from report to report: a
// first-order autoregression in equilibrium. From the report at on it is multiplied by
// factor.
func correlated(random *rand.Rand, reports int, scatter, correlation float64, at int, factor float64) []Entry {
	noise := random.NormFloat64()
	var history []Entry
	for i := range reports {
		value := 800 * (1 + scatter*noise)
		if i >= at {
			value *= factor
		}
		noise = correlation*noise + math.Sqrt(1-correlation*correlation)*random.NormFloat64()
		history = append(history, Entry{
			Schema: Schema, Time: time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC), Commit: fmt.Sprintf("c%d", i+1),
			Strategy: "spin", Metrics: map[string]float64{"acq_per_s": value},
		})
	}
	return history
}

// simulations is how many histories are simulated, and how many of them may show a change
// where there is none: a twentieth of five hundred with LOCKBENCH_MODEL=1 (make soak), and of
// the hundred of every day a tenth, for chance.
func simulations() (histories, allowed int) {
	if os.Getenv("LOCKBENCH_MODEL") != "" {
		return 500, 25
	}
	return 100, 10
}

// simulated counts the histories in which a change is found.
func simulated(t *testing.T, histories, reports int, correlation float64, at int, factor float64) int {
	t.Helper()
	const scatter = 0.05
	random := rand.New(rand.NewPCG(uint64(reports), uint64(100*correlation)))
	found := 0
	for range histories {
		history := correlated(random, reports, scatter, correlation, at, factor)
		if s := Build(history, metrics(t, "acq_per_s"), 500, DefaultRules())[0]; len(s.Changes) > 0 {
			found++
		}
	}
	return found
}

// With every value shuffled by itself 175 of 500 histories of 24 reports with a
// correlation of 0.6 had a change, and 370 of those of 96.
func TestHistoriesWithoutAChangeHaveNone(t *testing.T) {
	t.Parallel()
	histories, allowed := simulations()
	for _, test := range []struct {
		reports     int
		correlation float64
	}{{24, 0}, {24, 0.3}, {24, 0.6}, {40, 0.6}} {
		found := simulated(t, histories, test.reports, test.correlation, 0, 1)
		t.Logf("%d reports, correlation %v: %d of %d", test.reports, test.correlation, found, histories)
		if found > allowed {
			t.Errorf("%d of %d histories of %d reports with correlation %v have a change where there is none", found, histories, test.reports, test.correlation)
		}
	}
}

// The more a history is correlated, the longer it must be for a step to be told from it.
func TestAStepOfAFifthIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reports     int
		correlation float64
		least       int // of 20
	}{{24, 0, 14}, {40, 0.3, 16}, {60, 0.6, 14}} {
		if found := simulated(t, 20, test.reports, test.correlation, test.reports/2, 0.8); found < test.least {
			t.Errorf("a fifth less is found in %d of 20 histories of %d reports with correlation %v, wanted %d", found, test.reports, test.correlation, test.least)
		} else {
			t.Logf("%d reports, correlation %v: %d of 20", test.reports, test.correlation, found)
		}
	}
}

func TestASmallChangeIsNone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	for factor, want := range map[float64]int{0.97: 0, 0.93: 1} {
		history := correlated(random, 60, 0.001, 0, 30, factor)
		if s := Build(history, metrics(t, "acq_per_s"), 500, DefaultRules())[0]; len(s.Changes) != want {
			t.Errorf("times %v: %d changes, want %d", factor, len(s.Changes), want)
		}
	}
}
