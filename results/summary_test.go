package results_test

import (
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

func TestSummaryKeepsInvalidRunsOutOfMedians(t *testing.T) {
	r := sample.Report()
	r.Runs = []results.Run{
		{Strategy: "pubsub", Speed: results.Speed{PerSecond: 10}, Safety: results.Safety{Overlaps: 1}},
		{Strategy: "pubsub", Speed: results.Speed{PerSecond: 1000}, Invalid: []string{"why"}, Safety: results.Safety{Overlaps: 2}},
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
