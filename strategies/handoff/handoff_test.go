package handoff_test

import (
	"flag"
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

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // they wait most of the time
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	trial.Conform(t, "handoff")
}
