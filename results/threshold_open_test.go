package results_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// waited is a report of one run with so many waits seen to their end and so many cut off,
// all of them of one length each, in ms.
func waited(t *testing.T, ended, endedMS, open, openMS int64) *results.Report {
	t.Helper()
	h, censored := results.NewHistogram(), results.NewHistogram()
	longest := &results.Bound{NS: endedMS * 1e6}
	if err := h.RecordValues(endedMS*1e6, ended); err != nil {
		t.Fatal(err)
	}
	if open > 0 {
		if err := censored.RecordValues(openMS*1e6, open); err != nil {
			t.Fatal(err)
		}
		longest = results.Longest(longest, &results.Bound{NS: openMS * 1e6, AtLeast: true})
	}
	d, err := results.Describe(results.Observations{Ended: h, Censored: censored}, longest)
	if err != nil {
		t.Fatal(err)
	}
	d.MeanNS = new(float64(endedMS) * 1e6)
	run := results.Run{Strategy: "fifo", Round: 1, WindowNS: 1e9}
	run.Waiting.PerAcquisition = d
	return &results.Report{Rounds: 1, Strategies: []results.Strategy{{Name: "fifo"}}, Runs: []results.Run{run}}
}

func TestThresholdsOnUnfinishedWaits(t *testing.T) {
	fed := waited(t, 250, 400, 499, 200)    // in a queue somebody always waits
	starving := waited(t, 250, 400, 1, 900) // one that may wait for ever
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
		{"nothing is open", waited(t, 250, 400, 0, 0), "wait:max<500ms", true, "", "(400 ms)"},
		{"a percentile of too few", waited(t, 20, 400, 0, 0), "wait:p(99)<500ms", true, "", "the longest of 20"},
		{"a percentile of enough", waited(t, 100, 400, 0, 0), "wait:p(99)<500ms", true, "", "(400 ms)"},
		{"a median", waited(t, 20, 400, 0, 0), "wait:med<500ms", true, "", "(400 ms)"},
	} {
		v := judged(t, test.report, test.expression)[0]
		if v.Passed != test.passed || v.Why != test.why || !strings.Contains(v.String(), test.says) {
			t.Errorf("%s: %s: passed %v, want %v, %q", test.name, v, v.Passed, test.passed, test.says)
		}
	}
}
