package render

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/perf/benchproc"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Options that are not at their defaults must appear in the name of the benchmark, because benchstat would otherwise
// compare two workloads as one. Some options, such as the seed and the duration, must not appear.
func TestBenchmarkNamesHaveUnusualOptions(t *testing.T) {
	var timeout workloads.Duration
	const usual, second = "clients=100/keys=1/hold=0s", workloads.Duration(time.Second)
	for want, change := range map[string]func(*workloads.Spec){
		usual:                        func(*workloads.Spec) {},
		"clients=7/keys=1/hold=0s":   func(w *workloads.Spec) { w.Clients, w.Instances = 7, 7 },
		"clients=100/keys=4/hold=0s": func(w *workloads.Spec) { w.Keys = 4 },
		usual + "/stages=10s:5,1s:9": func(w *workloads.Spec) {
			w.Stages = workloads.Stages{{Duration: 10 * second, Target: 5}, {Duration: second, Target: 9}}
		},
		"clients=100/keys=1/hold=file:holds_2026|run_12": func(w *workloads.Spec) { // not 12 processors
			_ = w.Hold.UnmarshalText([]byte("file:holds 2026/run-12"))
		},
		usual + "/burst=50ms":   func(w *workloads.Spec) { w.Burst = second / 20 },
		usual + "/work=counter": func(w *workloads.Spec) { w.Work = workloads.WorkCounter },
		usual + "/work=counter/fence=off": func(w *workloads.Spec) {
			w.Work, w.Fence = workloads.WorkCounter, workloads.FenceOff
		},
		usual + "/timeout=0s": func(w *workloads.Spec) { w.Timeout = &timeout },
		"clients=100/keys=1/hold=1ms/rate=20|s/coalesce=true/faults=script-flush:at=1s;" +
			"waiter-crash:at=2s,n=5": func(w *workloads.Spec) {
			w.Rate, w.Hold, w.Coalesce = 20, workloads.Fixed(time.Millisecond), true
			w.Faults = []workloads.Fault{
				{Name: workloads.ScriptFlush, At: second}, {Name: workloads.WaiterCrash, At: 2 * second, N: 5},
			}
		},
		"clients=4/keys=1/hold=0s": func(w *workloads.Spec) {
			w.Clients, w.Instances, w.Seed, w.Pool, w.Arrivals = 4, 4, 9, 3, workloads.ArrivalsConstant
			w.Duration, w.Warmup, w.Iterations = 1, 0, 7
		},
	} {
		w := workloads.Default()
		change(&w)
		if got := benchName("spin", w); got != "BenchmarkLock/strategy=spin/"+want {
			t.Errorf("benchmark %s, want %s", got, want)
		}
	}
}

// TestBenchstatMakesOneTable groups the lines of two builds as benchstat does: the header determines the table, and
// parts of the name determine the row and the column. All lines must be in one table.
func TestBenchstatMakesOneTable(t *testing.T) {
	t.Parallel()
	before, after := sample(t, "recorded"), sample(t, "recorded")
	after.Tool = results.Tool{Name: "lockbench", Version: "v0.2.0", Commit: "fedcba9876543210"}
	after.Started, after.Finished = before.Started.AddDate(0, 0, 1), before.Finished.AddDate(0, 0, 1)
	after.Environment.TimerOvershoot++
	after.Workload.Seed++
	for i := range after.Runs {
		after.Runs[i].Seed++
		after.Runs[i].Started = after.Runs[i].Started.Add(24 * time.Hour)
	}
	var parser benchproc.ProjectionParser
	projection := func(expression string) *benchproc.Projection {
		p, err := parser.Parse(expression, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	tables, rows, columns := projection(".config"), projection("/clients"), projection("/strategy")
	residue := parser.Residue()
	seen := map[*benchproc.Projection][]string{}
	cells := map[string]int{}
	for _, r := range []*results.Report{before, after} {
		for _, line := range readBench(t, written(t, WriteBenchfmt, r)) {
			for _, p := range []*benchproc.Projection{tables, rows, columns, residue} {
				if key := p.Project(line).String(); !slices.Contains(seen[p], key) {
					seen[p] = append(seen[p], key)
				}
			}
			cells[columns.Project(line).String()]++
		}
	}
	if len(seen[tables]) != 1 || len(seen[rows]) != 1 || len(seen[residue]) != 1 {
		t.Errorf("tables %q, rows %q, and what is in neither %q: benchstat would split or warn", seen[tables],
			seen[rows], seen[residue])
	}
	for _, strategy := range []string{"spin", "pubsub", "redsync"} {
		if n := cells["/strategy:"+strategy]; n != 2*before.Rounds {
			t.Errorf("%s has %d samples in its column, not those of both builds, %d: %v", strategy, n, 2*before.Rounds,
				cells)
		}
	}
}
