package results_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

func TestThresholdsOnUnfinishedWaits(t *testing.T) {
	fed := sample.Waited(250, 400, 499, 200)    // in a queue somebody always waits
	starving := sample.Waited(250, 400, 1, 900) // one that may wait for ever
	for _, test := range []struct {
		name       string
		report     *results.Report
		expression string
		passed     bool
		why, says  string
	}{
		{"a mean of the curve", fed, "wait:avg<500ms", true, "", "499 had not ended"},
		{"a mean that is too long", fed, "wait:avg<300ms", false, "", "499 had not ended"},
		{"a mean without an upper bound", starving, "wait:avg<500ms", false, "only a lower bound is known", "1 had not ended"},
		{"a mean that is too long already", starving, "wait:avg<401ms", false, "", "1 had not ended"},
		{"the longest that was seen", fed, "wait:max<500ms", true, "", "499 had not ended"},
		{"the same by its other name", fed, "wait_max<500ms", true, "", "499 had not ended"},
		{"the longest is one that goes on", starving, "wait:max<2s", false, "only a lower bound is known", "1 had not ended"},
		{"nothing is open", sample.Waited(250, 400, 0, 0), "wait:max<500ms", true, "", "(400 ms)"},
		{"a percentile of too few", sample.Waited(20, 400, 0, 0), "wait:p(99)<500ms", true, "", "the longest of 20"},
		{"a percentile of enough", sample.Waited(100, 400, 0, 0), "wait:p(99)<500ms", true, "", "(400 ms)"},
		{"a median", sample.Waited(20, 400, 0, 0), "wait:med<500ms", true, "", "(400 ms)"},
	} {
		v := judged(t, test.report, test.expression)[0]
		if v.Passed != test.passed || v.Why != test.why || !strings.Contains(v.String(), test.says) {
			t.Errorf("%s: %s: passed %v, want %v, %q", test.name, v, v.Passed, test.passed, test.says)
		}
	}
}
