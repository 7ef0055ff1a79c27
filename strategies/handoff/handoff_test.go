package handoff_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	trial.Conform(t, "handoff")
}
