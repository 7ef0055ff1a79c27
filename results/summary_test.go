package results_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestSummariseKeepsSessionsApart: the rounds of two reports are pairs of their
// own, and what differs in more than its seed is not put together.
func TestSummariseKeepsSessionsApart(t *testing.T) {
	t.Parallel()
	a, b := golden.Report(t, "testdata/recorded.json"), golden.Report(t, "testdata/recorded.json")
	b.Workload.Seed++
	for i := range b.Runs { // a machine twice as fast on that day
		b.Runs[i].Speed.PerSecond *= 2
	}
	all := results.Summarise([]*results.Report{a, b})
	if len(all) != len(a.Strategies) {
		t.Fatalf("%d strategies are %d summaries", len(a.Strategies), len(all))
	}
	for _, s := range all {
		if len(s.Runs) != 2*a.Rounds || len(s.Used) != 2*a.Rounds || s.Invalid {
			t.Errorf("%s: %d of %d runs are used", s.Name, len(s.Used), len(s.Runs))
		}
	}
	m, _ := results.FindMetric("acq_per_s")
	alone := results.Summarise([]*results.Report{a})
	want, got := alone[1].Ratio(alone[0], m), all[1].Ratio(all[0], m)
	if got.Rounds != 2*want.Rounds || !got.Interval || want.Interval || got.Median < want.Low ||
		got.Median > want.High {
		t.Errorf("the ratio of one session is %+v, of two %+v", want, got)
	}
	if low, high, ok := all[0].Range(m); !ok || high < 2*low {
		t.Errorf("both sessions are in the range %v to %v, %v", low, high, ok)
	}
	b.Workload.Keys = 7
	if n := len(results.Summarise([]*results.Report{a, b})); n != 2*len(a.Strategies) {
		t.Errorf("two workloads of %d strategies are %d summaries", len(a.Strategies), n)
	}
	if a.Runs[0].Round > a.Rounds {
		t.Error("the report itself was renumbered")
	}
}

// TestExtras are there for what a workload has, and for nothing else.
func TestExtras(t *testing.T) {
	t.Parallel()
	if got := golden.Report(t, "testdata/normal.json").Extras(); len(got) > 0 {
		t.Errorf("a plain workload has %v", got)
	}
	r := golden.Report(t, "testdata/faults.json")
	r.Runs[0].Herd = &results.Herd{Bursts: 3, Attempts: new(7.0)}
	var titles []string
	for _, table := range r.Extras() {
		titles = append(titles, table.Title)
		for _, s := range r.Summaries() {
			for _, c := range table.Columns {
				if c.Flat() == "" || c.Text(s) == "" {
					t.Errorf("%s has the column %q with %q for %s", table.Title, c.Flat(), c.Text(s), s.Name)
				}
			}
		}
	}
	want := []string{"HERD one release"}
	for _, fault := range r.Workload.Faults {
		want = append(want, "FAULT "+fault.Name)
	}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
