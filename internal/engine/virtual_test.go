package engine_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/workloads"
)

type log struct {
	mu  sync.Mutex
	all []engine.Acquisition
}

func (*log) Holding(int)   {}
func (*log) Releasing(int) {}

func (l *log) Acquired(a engine.Acquisition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, a)
}

// arrival is an arrival of an open loop. due is its intended start, in nanoseconds after that of the first arrival, and
// hold is in nanoseconds.
type arrival struct {
	due, hold int64
	key       int
}

func arrivalsOf(t *testing.T, clients int, seed int64) []arrival {
	t.Helper()
	var all []arrival
	synctest.Test(t, func(t *testing.T) {
		var seen log
		virtual.Run(t, &seen, func(w *workloads.Spec) {
			w.Clients, w.Keys, w.Seed, w.Iterations = clients, 8, seed, 400
			w.Hold, w.Rate = virtual.Dist(t, "exp:2ms"), 1500
		})
		first := slices.MinFunc(seen.all, func(a, b engine.Acquisition) int { return cmp.Compare(a.Due, b.Due) }).Due
		for _, a := range seen.all {
			all = append(all, arrival{due: a.Due - first, hold: a.Released - a.Granted, key: a.Key})
		}
	})
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.due, b.due) })
	return all
}

// The window is twice as long as the trace. The run must replay the trace twice, each time with the exact instant, key
// and hold of each arrival.
func TestTraceInVirtualTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	text := workloads.TraceHeader + "\n0.001,a,5ms\n0.004,b,\n0.2,a,20ms\n0.3,c,0s\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var trace workloads.Arrivals
	if err := errors.Join(trace.UnmarshalText([]byte("file:"+file)), trace.Load()); err != nil {
		t.Fatal(err)
	}
	for _, hold := range []string{"7ms", "0s"} {
		playTrace(t, trace, hold)
	}
}

// playTrace replays the trace twice and compares each arrival with it. hold is the distribution of the holds that the
// trace leaves open.
func playTrace(t *testing.T, trace workloads.Arrivals, hold string) {
	t.Helper()
	length := trace.Trace().Length
	synctest.Test(t, func(t *testing.T) {
		var seen log
		virtual.Run(t, &seen, func(w *workloads.Spec) {
			w.Clients, w.Instances, w.Keys, w.Warmup = 20, 10, 3, 0
			w.Arrivals, w.Rate, w.Duration = trace, trace.Trace().Rate(), workloads.Duration(2*length)
			w.Hold = virtual.Dist(t, hold)
		})
		slices.SortFunc(seen.all, func(a, b engine.Acquisition) int { return cmp.Compare(a.Due, b.Due) })
		begun := seen.all[0].Due - int64(time.Millisecond)
		var got []string
		for _, a := range seen.all {
			got = append(got, fmt.Sprintf("%v %d %v", time.Duration(a.Due-begun), a.Key,
				time.Duration(a.Released-a.Granted).Round(time.Millisecond)))
		}
		var want []string
		for _, turn := range []time.Duration{0, length} {
			for _, of := range []struct {
				at   time.Duration
				rest string
			}{
				{time.Millisecond, "0 5ms"},
				{4 * time.Millisecond, "1 " + hold},
				{200 * time.Millisecond, "0 20ms"},
				{300 * time.Millisecond, "2 0s"},
			} {
				want = append(want, fmt.Sprintf("%v %s", turn+of.at, of.rest))
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// Two runs have the same seed, and 100 and 20 clients. Each arrival must have the same key and hold in both, whichever
// client serves it.
func TestArrivalsDoNotDependOnClients(t *testing.T) {
	many, few := arrivalsOf(t, 100, 42), arrivalsOf(t, 20, 42)
	n := min(len(many), len(few))
	if n < 350 {
		t.Fatalf("%d and %d arrivals", len(many), len(few))
	}
	for i := range n - 50 { // the end of the run may cut off the last ones
		if many[i] != few[i] {
			t.Fatalf("arrival %d is %+v to one of a hundred clients, %+v to one of twenty", i, many[i], few[i])
		}
	}
	other := arrivalsOf(t, 100, 43)
	same := 0
	for i := range n - 50 {
		if many[i].hold == other[i].hold {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d holds are alike under another seed", same)
	}
}

// In 5 s, 500 clients with holds of 20 ms get only 250 acquisitions from a first-come-first-served lock. The clients
// without one must not count as starved.
func TestShortWindowOfQueueStarvesNoClient(t *testing.T) {
	for _, test := range []struct {
		window time.Duration
		label  string // "" is none, and no client starves
	}{
		{
			5 * time.Second,
			"window too short for one fair round: 250 acquisitions for 500 clients; --duration 22s is long enough",
		},
		{10 * time.Second, ""},
		{22 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			run := virtual.Run(t, nil, func(w *workloads.Spec) {
				w.Clients, w.Hold, w.Duration = 500, workloads.Fixed(20*time.Millisecond),
					workloads.Duration(test.window)
			})
			got := slices.DeleteFunc(run.Labels.Texts(),
				func(label string) bool { return !strings.Contains(label, "fair round") })
			if strings.Join(got, "; ") != test.label { // other labels describe the machine
				t.Errorf("%v: labels %q, want %q", test.window, got, test.label)
			}
			if starved := run.Fairness.Starved; test.label == "" && (starved == nil || *starved != 0) ||
				test.label != "" && starved != nil {
				t.Errorf("%v: starved %v", test.window, starved)
			}
		})
	}
}
