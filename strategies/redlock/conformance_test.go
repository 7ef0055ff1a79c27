package redlock_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestConformance(t *testing.T) {
	trial.Conform(t, "redlock:min-delay=1ms,max-delay=20ms", "redlock:mode=sequential,min-delay=1ms,max-delay=20ms")
}
