package results_test

import (
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

// TestSummariseKeepsSessionsApart: the rounds of two reports are pairs of their
// own, and what differs in more than its seed is not put together.
func TestSummariseKeepsSessionsApart(t *testing.T) {
	t.Parallel()
	a, b := sample.Recorded(), sample.Recorded()
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
	if got.Rounds != 2*want.Rounds || !got.Interval || want.Interval || got.Median < want.Low || got.Median > want.High {
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
