package all_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// samples are variants that behave like faulty sample code in articles. The suite judges each sample by the claims of
// the variant in the field right. The check in the field check must report the sample as broken. pubsub:hoard=true is
// not among the samples, because it breaks no promise and costs only additional attempts.
var samples = []struct{ variant, right, check string }{
	{"spin:token=client", "spin", "stranger"},
	{"redlock:extend=again,node-timeout=2s", "redlock", "extend"},
	{"redlock:release=granted,node-timeout=100ms", "redlock", "lost reply"},
	{"pubsub:confirm=false", "pubsub", "release before the wait"},
	{"pubsub:hand-on=false", "pubsub", "cancelled at any moment"},
}

// mostLooks limits how often the test runs a check that has passed so far. Some faults appear only if a message and the
// end of a wait arrive within microseconds of each other.
const mostLooks = 20

func TestSuiteFindsSampleCodeBroken(t *testing.T) {
	t.Parallel()
	for _, sample := range samples {
		t.Run(sample.variant, func(t *testing.T) {
			t.Parallel()
			variant := trial.Variant(t, sample.variant)
			if variant.Info().Caveat == "" {
				t.Error("its Info has no caveat")
			}
			for _, check := range locktest.Checks() {
				if check.Name != sample.check {
					continue
				}
				got := check.Judge(t.Context(), trial.Everything(t, variant), trial.Variant(t, sample.right).Info())
				for looks := 1; looks < mostLooks && got.Verdict == locktest.Passed; looks++ {
					got = check.Judge(t.Context(), trial.Everything(t, variant), trial.Variant(t, sample.right).Info())
				}
				t.Log(got)
				if got.Verdict != locktest.Broken {
					t.Errorf("the suite finds it %s, want broken", got.Verdict)
				}
			}
		})
	}
}
