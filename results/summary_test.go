package results_test

import (
	"strings"
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
			Strategy: "pubsub", Speed: results.Speed{PerSecond: 1000}, Invalid: results.PlainTexts("why"),
			Safety: results.Safety{Overlaps: 2},
		},
		{Strategy: "pubsub", Speed: results.Speed{PerSecond: 20}},
		{Strategy: "pubsub", Speed: results.Speed{PerSecond: 900}, Partial: true},
		{Strategy: "spin", Speed: results.Speed{PerSecond: 7}, Failure: "it fell over"},
		{Strategy: "redsync", Speed: results.Speed{PerSecond: 5}, Partial: true},
		{Strategy: "redsync", Speed: results.Speed{PerSecond: 500}, Invalid: results.PlainTexts("why")},
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

// Brief must write a third digit of a measured value only if the summary has several runs and their values differ by at
// most a tenth of their median.
func TestBriefFigureDigits(t *testing.T) {
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

// Each part of a mixed strategy must have a row. The name of the row must include the mixed strategy only if the report
// has several mixed strategies.
func TestPartsHaveOwnRows(t *testing.T) {
	t.Parallel()
	run := func(strategy string, acquisitions ...int64) results.Run {
		r := results.Run{Strategy: strategy}
		for i, name := range strings.Split(strategy, "+") {
			r.Parts = append(r.Parts, results.Part{
				Strategy: name, Clients: 4, Acquisitions: acquisitions[i],
				Share: new(float64(acquisitions[i]) / 10), Overtaken: new(float64(i)),
			})
		}
		return r
	}
	report := &results.Report{
		Rounds: 1, Runs: []results.Run{run("a+b", 800, 200), {Strategy: "a"}, run("a+b", 900, 100)},
	}
	rows := func() (rows [][]string) {
		table := results.TableOf(results.MixedGroup, report)
		for _, s := range table.Rows {
			row := []string{s.Title()}
			for _, c := range table.Columns {
				row = append(row, c.Text(s))
			}
			rows = append(rows, row)
		}
		return rows
	}
	want := [][]string{
		{"a", "4", "850", "85.0 %", "–", "–", "0 %"}, {"b", "4", "150", "15.0 %", "–", "–", "1.00 %"},
	}
	if diff := cmp.Diff(want, rows()); diff != "" {
		t.Error(diff)
	}
	broken := run("a+c", 1, 999)
	broken.Invalid = results.PlainTexts("why")
	report.Runs = append(report.Runs, broken)
	if got := rows(); len(got) != 4 || got[0][0] != "a in a+b" || got[3][0] != "c in a+c" || got[3][3] != "99.9 %!" {
		t.Errorf("%q", got)
	}
	report.Runs = []results.Run{run("exec:x in y+b", 1, 2)}
	if got := rows(); got[0][0] != "exec:x in y" {
		t.Errorf("a part with another's separator in its name: %q", got)
	}
	report.Runs = []results.Run{{Strategy: "a"}}
	if table := results.TableOf(results.MixedGroup, report); len(table.Columns) > 0 {
		t.Errorf("without a mixed strategy: %v", table)
	}
}
