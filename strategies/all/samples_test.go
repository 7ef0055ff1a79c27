package all_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// The sample code of articles, as options of the locks that do it right. The suite judges each by what the right lock
// claims, and must find it broken. pubsub:hoard=true is not among them: it breaks nothing, it only costs attempts.
var samples = []struct{ variant, right, check string }{
	{"spin:token=client", "spin", "stranger"},
	{"redlock:extend=again,node-timeout=2s", "redlock", "extend"},
	{"redlock:release=granted,node-timeout=100ms", "redlock", "lost reply"},
	{"pubsub:confirm=false", "pubsub", "release before the wait"},
	{"pubsub:hand-on=false", "pubsub", "cancelled at any moment"},
}

// mostLooks is how often the suite may look for a fault that shows itself only when a message and the end of a wait
// meet within microseconds.
const mostLooks = 20

func TestTheSuiteFindsSampleCodeBroken(t *testing.T) {
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
