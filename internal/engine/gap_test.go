package engine

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// The time between two holds is known only where every key is always waited for, which keys that
// are chosen seldom are not.
func TestTheGapOfKeysThatAreChosenUnevenly(t *testing.T) {
	for dist, known := range map[string]bool{"uniform": true, "zipf:1.1": false} {
		r := &run{info: strategies.Info{Capacity: 1}, keys: []string{"a", "b"}, window: measure.NewWindow(measure.Clock{}, 0)}
		r.window.Plan(0, int64(time.Second))
		if err := r.Workload.KeyDist.UnmarshalText([]byte(dist)); err != nil {
			t.Fatal(err)
		}
		s := results.Speed{Acquisitions: 1000}
		s.Hold.MeanNS, s.Handoff.Count = new(1e6), 1000
		if gap := r.gap(s); (gap != nil) != known || known && *gap != 1e6 {
			t.Errorf("%s: the gap is %v", dist, gap)
		}
	}
	if (workloads.KeyDist{}).String() != "uniform" {
		t.Error("keys are not chosen evenly by default")
	}
}
