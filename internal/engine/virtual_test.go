package engine_test

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/workloads"
)

// log is an Observer that keeps what was acquired.
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

// arrival is what the i-th arrival of an open loop came for, in ns from the first.
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

// An arrival brings its key and its hold with it: which client takes it depends on who
// happens to be free, and must not change what a strategy is measured with.
func TestTheSameSeedIsTheSameArrivalsWhoeverServesThem(t *testing.T) {
	many, few := arrivalsOf(t, 100, 42), arrivalsOf(t, 20, 42)
	n := min(len(many), len(few))
	if n < 350 {
		t.Fatalf("%d and %d arrivals", len(many), len(few))
	}
	for i := range n - 50 { // the last ones may have been overtaken by the end
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

// A first-come-first-served lock starves nobody, however short the window is: five
// hundred clients that hold for 20 ms each have had 250 acquisitions in 5 s.
func TestAShortWindowOfAQueueStarvesNobody(t *testing.T) {
	for _, test := range []struct {
		window time.Duration
		label  string // "" is none, and nobody starves
	}{
		{
			5 * time.Second,
			"window too short for one fair round: 250 acquisitions for 500 clients, --duration 22s is not",
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
			if strings.Join(got, "; ") != test.label { // others are of the machine
				t.Errorf("%v: labels %q, want %q", test.window, got, test.label)
			}
			if starved := run.Fairness.Starved; test.label == "" && (starved == nil || *starved != 0) ||
				test.label != "" && starved != nil {
				t.Errorf("%v: starved %v", test.window, starved)
			}
		})
	}
}
