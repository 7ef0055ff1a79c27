package merge

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// TestCluster: every generator has read the same nodes, though it may have met them in
// another order.
func TestCluster(t *testing.T) {
	t.Parallel()
	node := func(port int, calls, bus int64) results.NodeDelta {
		return results.NodeDelta{Address: fmt.Sprint("host:", port), Role: "primary", Calls: &calls, Commands: map[string]int64{"get": calls}, BusReceived: &bus}
	}
	a, b := generatorFile(t, "a", 1), generatorFile(t, "b", 2)
	a.Runs[0].Server.Window.BusReceived, a.Runs[0].Server.Window.Nodes = new(int64(100)), []results.NodeDelta{node(1, 10, 60), node(2, 30, 40)}
	b.Runs[0].Server.Window.BusReceived, b.Runs[0].Server.Window.Nodes = new(int64(200)), []results.NodeDelta{node(2, 32, 80), node(1, 12, 120)}
	window := merged(t, a, b).Runs[0].Server.Window
	if got := window.BusReceived; got == nil || *got != 150 {
		t.Errorf("%v bytes went over the bus", got)
	}
	if diff := cmp.Diff([]results.NodeDelta{node(1, 11, 90), node(2, 31, 60)}, window.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// TestGap is known of one lock for which somebody always waits.
func TestGap(t *testing.T) {
	t.Parallel()
	runs := merged(t, generatorFile(t, "a", 1), generatorFile(t, "b", 2)).Runs
	one, four := runs[0], runs[1]
	if want := 1e9/one.Speed.PerSecond - *one.Speed.Hold.MeanNS; one.Speed.Gap == nil || *one.Speed.Gap != want {
		t.Errorf("the gap of one lock is %v, want %v", one.Speed.Gap, want)
	}
	if four.Speed.Gap != nil {
		t.Errorf("with four locks somebody need not wait, and the gap is %v", *four.Speed.Gap)
	}
	for name, change := range map[string]func(*workloads.Spec){
		"pause":     func(w *workloads.Spec) { w.Think = workloads.Fixed(time.Millisecond) },
		"give up":   func(w *workloads.Spec) { w.Timeout = new(workloads.Duration) },
		"share":     func(w *workloads.Spec) { w.Coalesce = true },
		"end early": func(w *workloads.Spec) { w.Iterations = 1000 },
	} {
		a, b := generatorFile(t, "a", 1), generatorFile(t, "b", 2)
		for _, f := range []File{a, b} {
			for i := range f.Points {
				change(&f.Points[i].Workload)
			}
		}
		if gap := merged(t, a, b).Runs[0].Speed.Gap; gap != nil {
			t.Errorf("clients that %s leave the lock free, and the gap is %v", name, *gap)
		}
	}
}

// TestOpenLoop has no turns to count, but waits.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	a, b := generatorFile(t, "a", 1), generatorFile(t, "b", 2)
	for _, f := range []File{a, b} {
		f.Runs[0].Fairness.PerClient, f.Runs[0].Fairness.Jain = "", nil
	}
	b.Runs[0].Fairness.LargestBypass = 9
	f := merged(t, a, b).Runs[0].Fairness
	if f.Jain != nil || f.PerClient != "" || f.LongestWait.NS != 2e9 || f.LargestBypass != 9 || f.AcquisitionsMax != 63 {
		t.Errorf("fairness of both is %+v", f)
	}
}
