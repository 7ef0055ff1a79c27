package cohort_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	trial.Conform(t, "cohort")
}
