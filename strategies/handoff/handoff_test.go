package handoff_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/servers"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { trial.Conform(t, "handoff") }

// startRedis is for an example, which has no testing.T.
func startRedis() (address string, stop func()) {
	own, err := servers.StartOwn(context.Background(), servers.Options{RunID: "test"})
	if err != nil {
		panic(err)
	}
	return own.Addr(), func() { _ = own.Close(context.Background()) }
}
