package observe

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/workloads"
)

// The test captures tries, grants and releases of several clients. The trace must contain each request once, however
// often the client tried, and must give its hold if the capture shows the release.
func TestTraceHasArrivalsAndHolds(t *testing.T) {
	t.Parallel()
	lines := []string{
		"0 c9 EVALSHA rel 1 k z", "0 > GET k", "0 > DEL k", // k is free
		"100 c1 SET k a NX PX 500", "110 c2 SET k b NX PX 500", "120 c2 SET k b NX PX 500",
		"150 c1 EVALSHA rel 1 k a", "150 > GET k", "150 > DEL k",
		"160 c2 SET k b NX PX 500", "165 c3 SET cached x NX EX 9", "180 c2 EVALSHA rel 1 k b", "180 > GET k", "180 > DEL k",
		"200 c1 SET k c NX PX 500", "210 c4 SET k d NX PX 500", "220 c4 SET k d NX PX 500", // gives up
		"2000 c9 GET cached",
	}
	d := observed(t, Options{Trace: true}, lines...)
	var got bytes.Buffer
	if err := d.WriteTrace(&got); err != nil {
		t.Fatal(err)
	}
	want := `seconds,key,hold
# seen by lockbench observe from 2023-11-14T22:13:20Z on, for 2s
0.100000,"k",50ms
0.110000,"k",20ms
0.200000,"k",500ms
0.210000,"k",
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	d.TraceFile = filepath.Join(t.TempDir(), "arrivals.csv")
	if err := os.WriteFile(d.TraceFile, got.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := d.WriteWorkload(&file); err != nil {
		t.Fatal(err)
	}
	wantFile := `description: 4 arrivals on 1 lock, captured by lockbench observe over 2s
arrivals: file:arrivals.csv
clients: 10
hold: 50ms
ttl: 1s
`
	if diff := cmp.Diff(wantFile, strings.ReplaceAll(file.String(), d.TraceFile, "arrivals.csv")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	read, err := workloads.ReadFile("observed.yaml", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	points, err := read.Draft.Points()
	if err != nil {
		t.Fatal(err)
	}
	w := points[0].Workload
	if err := w.Validate(); err != nil || w.Keys != 1 || len(w.Arrivals.Trace().Arrivals) != 4 {
		t.Errorf("it is read as %s: %v", w.Describe(), err)
	}
}

// If a library uses a new value after its first try, the first try must not count as a separate arrival.
func TestFirstTryIsNotASeparateArrival(t *testing.T) {
	t.Parallel()
	lines := slices.Clone(known)
	lines = append(lines, "100 c1 SET k a NX PX 9000", "110 c2 SET k b NX PX 9000", "111 c2 SET k b2 NX PX 9000",
		"2000 c2 SET k b2 NX PX 9000", "2010 c3 SET k c NX PX 9000", "2011 c3 SET k c2 NX PX 9000",
		"2020 c3 SET k c2 NX PX 9000", "2030 c1 EVALSHA rel 1 k a", "2030 > GET k", "2030 > DEL k",
		"2040 c2 SET k b2 NX PX 9000")
	d := observed(t, Options{Trace: true}, lines...)
	if n := len(d.trace.Arrivals); n != 3 || d.trace.Most != 3 {
		t.Errorf("%d arrivals of 3 clients, %d at a time: %v", n, d.trace.Most, d.trace.Arrivals)
	}
}

// A trace with fewer than two arrivals cannot be replayed.
func TestTraceNeedsTwoArrivals(t *testing.T) {
	t.Parallel()
	d := observed(t, Options{Trace: true}, "100 c1 SET k a NX PX 500")
	if err := d.WriteTrace(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "too few to replay") {
		t.Error(err)
	}
}

// The trace of a run must have as many arrivals as the run had leases, on the same keys. The holds in the trace must
// not be shorter than the requested holds, because Redis sees each hold prolonged by the network delay.
// TestTraceInVirtualTime shows that a replay equals the trace.
func TestTraceMatchesRun(t *testing.T) {
	t.Parallel()
	run, _, seen := runObserved(t, "spin", func(w *workloads.Spec) {
		w.Keys, w.Clients = 3, 12
		if err := w.Hold.UnmarshalText([]byte("uniform:1ms,9ms")); err != nil {
			t.Fatal(err)
		}
	})
	const clients = 12
	leases := float64(run.Speed.Acquisitions)
	within(t, "arrivals", float64(len(seen.trace.Arrivals)), leases, 0, 2*clients)
	var held time.Duration
	keys := map[string]int{}
	for _, a := range seen.trace.Arrivals {
		held += max(0, a.Hold)
		keys[a.Key]++
	}
	if asked := time.Duration(*run.Speed.HoldAsked * leases); held < asked {
		t.Errorf("locks were held for %v, at least %v were asked", held, asked)
	}
	if len(keys) < 3 || seen.trace.Most < 2 || seen.trace.Most > 2*clients {
		t.Errorf("keys %v, %d clients at a time", keys, seen.trace.Most)
	}
}
