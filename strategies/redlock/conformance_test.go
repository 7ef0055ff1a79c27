package redlock_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/redlock"
)

func init() { strategies.RegisterStrategy(redlock.Strategy()) }

// The node timeout is far longer than the default of 50 ms. A busy machine may exceed the default, and the lock then
// gives up as designed.
func TestConformance(t *testing.T) {
	const patient = "node-timeout=2s,min-delay=1ms,max-delay=20ms"
	trial.Conform(t, "redlock:"+patient, "redlock:mode=sequential,"+patient)
}
