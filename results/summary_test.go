package results_test

import (
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

func TestSummaryKeepsInvalidRunsOutOfMedians(t *testing.T) {
	r := golden.Report(t, "testdata/normal.json")
	r.Runs = []results.Run{
		{Strategy: "pubsub", Speed: results.Speed{PerSecond: 10}, Safety: results.Safety{Overlaps: 1}},
		{
			Strategy: "pubsub", Speed: results.Speed{PerSecond: 1000}, Invalid: []string{"why"},
			Safety: results.Safety{Overlaps: 2},
		},
		{Strategy: "pubsub", Speed: results.Speed{PerSecond: 20}},
		{Strategy: "pubsub", Speed: results.Speed{PerSecond: 900}, Partial: true},
		{Strategy: "spin", Speed: results.Speed{PerSecond: 7}, Failure: "it fell over"},
		{Strategy: "redsync", Speed: results.Speed{PerSecond: 5}, Partial: true},
		{Strategy: "redsync", Speed: results.Speed{PerSecond: 500}, Invalid: []string{"why"}},
	}
	all := r.Summaries()
	if len(all) != 3 || all[0].Name != "spin" || all[1].Name != "pubsub" {
		t.Fatalf("not in the order asked for: %+v", all)
	}
	rate, overlaps := metric(t, "acq_per_s"), metric(t, "overlaps")
	if got := all[1].Figure(rate).Value; got != 15 {
		t.Errorf("median %v, want 15", got)
	}
	if got := all[1].Figure(overlaps).Value; got != 3 {
		t.Errorf("%v overlaps, want all 3", got)
	}
	if s := all[0]; !s.Invalid || s.Figure(rate).Value != 7 {
		t.Errorf("the failed run is not shown as suspect: %+v", s)
	}
	if s := all[2]; s.Invalid || s.Figure(rate).Value != 5 {
		t.Errorf("where no run is complete one that was cut short counts: %+v", s)
	}
}

func metric(t *testing.T, name string) results.Metric {
	t.Helper()
	m, ok := results.FindMetric(name)
	if !ok {
		t.Fatalf("there is no metric %s", name)
	}
	return m
}

// A third digit is written only where several runs say that it means something.
func TestBriefFiguresHaveAsManyDigitsAsAreKnown(t *testing.T) {
	t.Parallel()
	rates := func(all ...float64) (runs []results.Run) {
		for _, rate := range all {
			runs = append(runs, results.Run{Speed: results.Speed{PerSecond: rate}})
		}
		return runs
	}
	gap := func(ns float64) []results.Run { return []results.Run{{Speed: results.Speed{Gap: &ns}}} }
	cost := func(calls int64, cpu, idle float64) []results.Run {
		return []results.Run{{Server: results.Server{Window: &results.ServerDelta{
			Acquisitions: 1000, Calls: &calls,
			CPU: &cpu, IdleCPU: &idle,
		}}}}
	}
	waits := func(ns int64) []results.Run {
		d := results.Distribution{Count: 500, P99: &results.Bound{NS: ns, AtLeast: true}}
		return []results.Run{{Waiting: results.Waiting{PerClient: d}}}
	}
	for _, test := range []struct {
		metric string
		runs   []results.Run
		want   string
	}{
		{"acq_per_s", rates(957), "960/s"},
		{"acq_per_s", rates(957, 961, 949), "957/s"},  // within a tenth
		{"acq_per_s", rates(957, 1100, 949), "960/s"}, // not
		{"acq_per_s", rates(1_234_567, 1_234_567), "1.23 M/s"},
		{"acq_per_s", rates(996), "1.0 k/s"},
		{"acq_per_s", rates(0), "0/s"},
		{"acquisitions", []results.Run{{Speed: results.Speed{Acquisitions: 12345}}}, "12345"}, // counted
		{"gap", gap(41_700), "42 µs"},
		{"gap", gap(0.4), "0.40 ns"},
		{"gap", gap(-562_000), "−560 µs"},
		{"gap", []results.Run{{}}, "–"},
		{"commands_per_acq", cost(255, 1, 0), "0.26"},
		{"commands_per_acq", cost(17_149, 1, 0), "17"},
		{"commands_per_acq", cost(12_345_000, 1, 0), "12 k"},
		{"redis_cpu_per_acq", cost(1, 0.1234, 0), "120 µs"},
		{"redis_cpu_per_acq", cost(1, 0.1234, 0.1), "~20 µs"}, // the most was subtracted
		{"wait_per_client_p99", waits(4_912_000_000), "≥ 4.9 s"},
	} {
		m, _ := results.FindMetric(test.metric)
		s := results.Summary{Runs: test.runs, Used: test.runs}
		if got := s.Brief(m); got != test.want {
			t.Errorf("%s of %d runs: %q, want %q", test.metric, len(test.runs), got, test.want)
		}
	}
}
