package cohort_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { trial.Conform(t, "cohort") }

func TestOptions(t *testing.T) {
	for batch, ok := range map[int]bool{-1: false, 0: false, 1: true, 1024: true, 1025: false} {
		if err := (cohort.Options{Batch: batch}).Validate(); (err == nil) != ok {
			t.Errorf("batch=%d: %v", batch, err)
		}
	}
}
