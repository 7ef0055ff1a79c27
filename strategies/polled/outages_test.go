package polled_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestOutages(t *testing.T) {
	trial.Outages(t, "setnx", "setnx-expire", "setnx-expire:check=get", "spin")
}
