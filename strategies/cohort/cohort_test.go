package cohort_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func init() {
	strategies.RegisterStrategy(cohort.Strategy())
	strategies.RegisterStrategy(handoff.Strategy())
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	trial.Conform(t, "cohort")
}
