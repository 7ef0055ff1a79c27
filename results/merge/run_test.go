package merge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
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

// TestOpenLoop has no turns to count, but waits.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	a, b := generatorFile(t, "a", 1), generatorFile(t, "b", 2)
	for _, f := range []File{a, b} {
		f.Runs[0].Fairness.Turns, f.Runs[0].Fairness.Jain = "", nil
	}
	b.Runs[0].Fairness.LargestBypass = 9
	f := merged(t, a, b).Runs[0].Fairness
	if f.Jain != nil || f.Turns != "" || f.LongestWait.NS != 2e9 || f.LargestBypass != 9 || f.TurnsMax != 63 {
		t.Errorf("fairness of both is %+v", f)
	}
}
