package command_test

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockbench/lockbench/results"
)

// generators has two lockbenches measure together on the Redis at $OWN, into a.json and
// b.json, and merges these as merged.json. They begin when both have had much time to get
// ready.
func generators(ts *testscript.TestScript, _ bool, flags []string) {
	one := "lockbench -q -u $OWN --session both --start-at $AT " + strings.Join(flags, " ")
	ts.Setenv("AT", time.Now().Add(15*time.Second).UTC().Format(time.RFC3339Nano))
	fit(ts, false, []string{"-silent", "sh", "-c", one + " -o json=a.json & " + one +
		" --seed 2 -o json=b.json; code=$?; wait $! && exit $code"})
	fit(ts, false, []string{"-silent", "lockbench", "merge", "a.json", "b.json", "-o", "merged.json"})
}

func read(ts *testscript.TestScript, name string) *results.Report {
	f, err := os.Open(ts.MkAbs(name))
	ts.Check(err)
	defer f.Close()
	report, err := results.ReadJSON(f)
	ts.Check(err)
	return report
}

// otherGenerators compares a report merged of two generators' with theirs, and with that
// of one process that did the same: together MERGED ALONE PART PART.
func otherGenerators(ts *testscript.TestScript, _ bool, args []string) {
	var reports []*results.Report
	for _, name := range args {
		reports = append(reports, read(ts, name))
	}
	merged, alone, parts := reports[0], reports[1], reports[2:]
	if len(merged.Runs) != len(parts[0].Runs) {
		ts.Fatalf("%d runs are merged of %d", len(merged.Runs), len(parts[0].Runs))
	}
	calls := func(run results.Run) float64 { return *run.Server.Window.PerAcquisition(run.Server.Window.Calls) }
	// On a busy machine the server's counters may be of another time than a short window.
	known := !slices.ContainsFunc(reports, func(r *results.Report) bool {
		return slices.ContainsFunc(r.Runs, func(run results.Run) bool { return run.Server.Window == nil })
	})
	if !known {
		ts.Logf("what the server counted in the windows is not known")
	}
	for _, run := range merged.Runs {
		var acquisitions, waits int64
		for _, p := range parts {
			theirs := find(ts, p, run)
			acquisitions += theirs.Speed.Acquisitions
			waits += theirs.Waiting.PerAcquisition.Count
			if known && calls(theirs) < 1.4*calls(run) {
				ts.Fatalf("%s: one generator counts %.2f commands per acquisition (all commands), both together %.2f",
					run.Strategy, calls(theirs), calls(run))
			}
		}
		if run.Speed.Acquisitions != acquisitions || run.Waiting.PerAcquisition.Count != waits || acquisitions == 0 {
			ts.Fatalf("%s: %d acquisitions and %d waits are merged of %d and %d", run.Strategy, run.Speed.Acquisitions,
				run.Waiting.PerAcquisition.Count, acquisitions, waits)
		}
		// Counted twice it would be the double. How often clients meet depends on the machine.
		if known {
			if got, want := calls(run), calls(find(ts, alone, run)); got < 0.7*want || got > 1.4*want {
				ts.Fatalf("%s: %.2f commands an acquisition by two generators, %.2f by one", run.Strategy, got, want)
			}
		}
		if left := run.Safety.LeftoverCount; left == nil || *left != 0 || run.Safety.LostLeases > 0 {
			ts.Fatalf("%s: %v left behind, %d leases lost", run.Strategy, run.Safety.Leftovers, run.Safety.LostLeases)
		}
	}
}

func find(ts *testscript.TestScript, r *results.Report, like results.Run) results.Run {
	for _, run := range r.Runs {
		if run.Strategy == like.Strategy {
			return run
		}
	}
	ts.Fatalf("there is no run of %s", like.Strategy)
	return results.Run{}
}
