package results_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

func judged(t *testing.T, r *results.Report, expression string) []results.Judgement {
	t.Helper()
	threshold, err := results.ParseThreshold(expression)
	if err != nil {
		t.Fatal(err)
	}
	return results.Judge(r, []results.Threshold{threshold})
}

func TestThresholds(t *testing.T) {
	r := golden.Report(t, "testdata/recorded.json")
	r.Runs[0].Safety.Overlaps = 2 // of spin
	for _, test := range []struct {
		expression string
		passed     map[string]bool
	}{
		{"acq_per_s>400", map[string]bool{"spin": true, "pubsub": true, "redsync": false}},
		{"acq_per_s > 411/s", map[string]bool{"spin": false, "pubsub": true, "redsync": false}},
		{"acq_per_s>=411", map[string]bool{"spin": true, "pubsub": true, "redsync": false}},
		{"acq_per_s{strategy:spin}<=411", map[string]bool{"spin": true}},
		{"violations==0", map[string]bool{"spin": false, "pubsub": true, "redsync": true}},
		{"violations === 0", map[string]bool{"spin": false, "pubsub": true, "redsync": true}},
		{"violations{ strategy : pubsub } != 0", map[string]bool{"pubsub": false}},
		{"redis_cpu_per_acq<600us", map[string]bool{"spin": true, "pubsub": true, "redsync": false}},
		{"bytes_out_per_acq<=1.21KB", map[string]bool{"spin": true, "pubsub": true, "redsync": true}},
		{"bytes_out_per_acq<1210", map[string]bool{"spin": false, "pubsub": false, "redsync": false}},
		{"utilisation>60%", map[string]bool{"spin": true, "pubsub": true, "redsync": false}},
		{"handoff:p(99)<1ms", map[string]bool{"spin": false, "pubsub": false, "redsync": false}},
		{"handoff:p(0.5)<1ms", map[string]bool{"spin": true, "pubsub": true, "redsync": true}},
		{"release:p(97.5) < 1s", map[string]bool{"spin": true, "pubsub": true, "redsync": true}},
		{"release:max<10s", map[string]bool{"spin": true, "pubsub": true, "redsync": true}},
		{"wait:med<10s", map[string]bool{"spin": true, "pubsub": true, "redsync": true}},
		{"wait_p50<10s", map[string]bool{"spin": true, "pubsub": true, "redsync": true}},
	} {
		got := map[string]bool{}
		for _, v := range judged(t, r, test.expression) {
			got[v.Strategy] = v.Passed
			if v.Value == nil || v.Why.Text != "" {
				t.Errorf("%s: %s", test.expression, v)
			}
		}
		if diff := cmp.Diff(test.passed, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.expression, diff)
		}
	}
}

func TestThresholdsOnUnknownFigures(t *testing.T) {
	r := golden.Report(t, "testdata/recorded.json")
	r.Strategies = append(r.Strategies, results.Strategy{Name: "late"})
	r.LeftOut = []results.LeftOut{{"redlock", results.PlainText("it needs 3 nodes")}}
	r.Points = []workloads.Point{{Workload: r.Workload}, {Label: "clients=20", Workload: r.Workload}}
	for i := range r.Runs {
		if r.Runs[i].Strategy == "pubsub" {
			r.Runs[i].Invalid = results.PlainTexts("books")
		}
	}
	for _, test := range []struct {
		expression, strategy string
		passed               bool
		why                  string
	}{
		{"wake_ups_per_acq<5", "redsync", false, "the figure is not known"},
		{"wake_ups_per_acq<5", "spin", true, ""},
		{"wake_ups_per_acq<5", "pubsub", false, "none of its runs can be trusted"},
		{"wake_ups_per_acq<5", "late", false, "it was not measured"},
		{"acq_per_s{strategy:spin}>1", "spin", true, ""}, // at every point of a sweep
		{"acq_per_s{strategy:spin}>1", "spin clients=20", false, "it was not measured"},
		{"violations==0", "pubsub", true, ""}, // safety is counted over all runs
		{"violations{strategy:redlock}==0", "redlock", false, "no measured strategy matches it"},
		// In the following cases, the p99 of spin's waits is known to be at least 5.2 s.
		{"wait:p(99)<5s", "spin", false, ""},
		{"wait:p(99)<50s", "spin", false, "only a lower bound is known"},
		{"wait:p(99)>5s", "spin", true, ""},
		{"wait:p(99)>50s", "spin", false, "only a lower bound is known"},
		{"wait:p(99)==50s", "spin", false, "only a lower bound is known"},
		{"wait:p(99)!=5s", "spin", true, ""},
	} {
		found := false
		for _, v := range judged(t, r, test.expression) {
			if v.Strategy != test.strategy {
				continue
			}
			found = true
			if v.Passed != test.passed || v.Why.Text != test.why {
				t.Errorf("%s: passed %v, %q; want %v, %q", test.expression, v.Passed, v.Why, test.passed, test.why)
			}
		}
		if !found {
			t.Errorf("%s: nothing is said of %s", test.expression, test.strategy)
		}
	}
}

func TestThresholdsOfVariants(t *testing.T) {
	for _, test := range []struct {
		selector, name string
		want           bool
	}{
		{"", "spin", true},
		{"{strategy:spin}", "spin", true},
		{"{strategy:spin}", "spin:backoff=fixed,base=5ms", true},
		{"{strategy:spin:backoff=fixed,base=5ms}", "spin:backoff=fixed,base=5ms", true},
		{"{strategy:spin:backoff=fixed,base=5ms}", "spin", false},
		{"{strategy:spin}", "spinner", false},
	} {
		threshold, err := results.ParseThreshold("violations" + test.selector + "==0")
		if err != nil || threshold.Matches(test.name) != test.want {
			t.Errorf("%s: %s: %v %v", test.selector, test.name, threshold.Matches(test.name), err)
		}
	}
}

// Each of these expressions must be rejected. command/testdata/badinputs.txt has the error messages.
func TestThresholdFaults(t *testing.T) {
	for _, expression := range []string{
		"", "<50ms", "wait:p(99)", "wait:p(99)=50ms", "wait<50ms", "wait:p99<50ms", "wait:p(101)<50ms", "wait:p(0)<50ms",
		"wait:p(NaN)<50ms", "wait:p(99)<50", "wait:p(99)<", "wait:p(99)<<50ms", "waits:p(99)<50ms", "violations:max==0",
		"violations==none", "violations==Inf", "acq_per_s>800/m", "bytes_in_per_acq<2kilo",
		"wait{strategy:spin:p(99)<50ms", "wait{clients:5}:p(99)<50ms", "wait{strategy:}:p(99)<50ms",
		"wait{strategy:a}{strategy:b}:max<1",
	} {
		if _, err := results.ParseThreshold(expression); err == nil {
			t.Errorf("%q was taken", expression)
		}
	}
}

func TestThresholdsOnUnfinishedWaits(t *testing.T) {
	fed := waited(250, 400, 499, 200)    // in a queue some client always waits
	starving := waited(250, 400, 1, 900) // one that may wait for ever
	for _, test := range []struct {
		name       string
		report     *results.Report
		expression string
		passed     bool
		why, says  string
	}{
		{"the longest that was seen", fed, "wait:max<500ms", true, "", "499 had not ended"},
		{"the same by its other name", fed, "wait_max<500ms", true, "", "499 had not ended"},
		{
			"the longest is one that goes on", starving, "wait:max<2s", false, "only a lower bound is known",
			"1 had not ended",
		},
		{"nothing is open", waited(250, 400, 0, 0), "wait:max<500ms", true, "", "(400 ms)"},
		{"a percentile of too few", waited(20, 400, 0, 0), "wait:p(99)<500ms", true, "", "the longest of 20"},
		{"a percentile of enough", waited(100, 400, 0, 0), "wait:p(99)<500ms", true, "", "(400 ms)"},
		{"a median", waited(20, 400, 0, 0), "wait:med<500ms", true, "", "(400 ms)"},
	} {
		v := judged(t, test.report, test.expression)[0]
		if v.Passed != test.passed || v.Why.Text != test.why || !strings.Contains(v.String(), test.says) {
			t.Errorf("%s: %s: passed %v, want %v, %q", test.name, v, v.Passed, test.passed, test.says)
		}
	}
}

// waited returns a report of one run. ended is the number of its waits that took endedMS ms each. open is the number of
// its waits that have not ended and have lasted openMS ms each so far.
func waited(ended, endedMS, open, openMS int64) *results.Report {
	o := results.Observations{Ended: results.Histogram{{To: endedMS * 1e6, Count: ended}}}
	longest := &results.Bound{NS: endedMS * 1e6}
	if open > 0 {
		o.Open = results.Histogram{{To: openMS * 1e6, Count: open}}
		longest = results.Longest(longest, &results.Bound{NS: openMS * 1e6, AtLeast: true})
	}
	run := results.Run{Strategy: "fifo", Round: 1, WindowNS: 1e9}
	run.Waiting.PerAcquisition = results.Describe(o, longest)
	run.Waiting.PerAcquisition.MeanNS = new(float64(endedMS) * 1e6)
	return &results.Report{Rounds: 1, Strategies: []results.Strategy{{Name: "fifo"}}, Runs: []results.Run{run}}
}
