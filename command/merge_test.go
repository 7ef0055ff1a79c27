package command_test

import (
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockbench/lockbench/results"
)

// soon sets a variable to an instant so far from now: soon AT 3s.
func soon(ts *testscript.TestScript, _ bool, args []string) {
	after, err := time.ParseDuration(args[1])
	ts.Check(err)
	ts.Setenv(args[0], time.Now().Add(after).UTC().Format(time.RFC3339Nano))
}

// together compares a report merged of two generators' with theirs, and with that
// of one process that did the same: together MERGED ALONE PART PART.
func together(ts *testscript.TestScript, _ bool, args []string) {
	var reports []*results.Report
	for _, name := range args {
		f, err := os.Open(ts.MkAbs(name))
		ts.Check(err)
		report, err := results.ReadJSON(f)
		ts.Check(err)
		ts.Check(f.Close())
		reports = append(reports, report)
	}
	merged, alone, parts := reports[0], reports[1], reports[2:]
	if len(merged.Runs) != len(parts[0].Runs) {
		ts.Fatalf("%d runs are merged of %d", len(merged.Runs), len(parts[0].Runs))
	}
	calls := func(run results.Run) float64 { return *run.Server.Window.PerAcquisition(run.Server.Window.Calls) }
	for _, run := range merged.Runs {
		var acquisitions, waits int64
		for _, p := range parts {
			theirs := find(ts, p, run)
			acquisitions += theirs.Speed.Acquisitions
			waits += theirs.Waiting.PerAcquisition.Count
			if cost := calls(theirs); cost < 1.4*calls(run) {
				ts.Fatalf("%s: a generator by itself counts %.2f commands an acquisition, those of both, and together they count %.2f", run.Strategy, cost, calls(run))
			}
		}
		if run.Speed.Acquisitions != acquisitions || run.Waiting.PerAcquisition.Count != waits || acquisitions == 0 {
			ts.Fatalf("%s: %d acquisitions and %d waits are merged of %d and %d", run.Strategy, run.Speed.Acquisitions, run.Waiting.PerAcquisition.Count, acquisitions, waits)
		}
		if got, want := calls(run), calls(find(ts, alone, run)); got < 0.85*want || got > 1.15*want {
			ts.Fatalf("%s: %.2f commands an acquisition by two generators, %.2f by one", run.Strategy, got, want)
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
