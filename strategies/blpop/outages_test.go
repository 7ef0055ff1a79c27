package blpop_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestOutages(t *testing.T) { trial.Outages(t, "blpop") }
