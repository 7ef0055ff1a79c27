package render

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// sample reads a report of the common test data, samples those with tables of their own.
func sample(t *testing.T, name string) *results.Report {
	t.Helper()
	return golden.Report(t, "../testdata/"+name+".json")
}

func samples(t *testing.T) map[string]*results.Report {
	t.Helper()
	all := golden.Reports(t, "../testdata")
	delete(all, "recorded") // the tables of rounds
	return all
}

func draw(t *testing.T, r *results.Report, color bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTables(&b, r, color); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// kinds are the full tables and the short one, with the beginning of their golden files and their width.
var kinds = []struct {
	name    string
	write   func(*testing.T, *results.Report, bool) string
	reports func(*testing.T) map[string]*results.Report
	width   int
}{{"tables", draw, samples, layout.Width}, {"short", short, shortCases, 80}}

func TestTableGolden(t *testing.T) {
	for _, kind := range kinds {
		for name, report := range kind.reports(t) {
			t.Run(kind.name+"-"+name, func(t *testing.T) {
				file := filepath.Join("testdata", kind.name+"-"+name+".golden")
				golden.Compare(t, file, kind.write(t, report, false))
			})
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestTableColourChangesNoCharacter(t *testing.T) {
	for _, kind := range kinds {
		for name, report := range kind.reports(t) {
			plain, coloured := kind.write(t, report, false), kind.write(t, report, true)
			if !strings.Contains(coloured, "\x1b[") {
				t.Errorf("%s %s: no colour", kind.name, name)
			}
			if diff := cmp.Diff(plain, trimLines(escapes.ReplaceAllString(coloured, ""))); diff != "" {
				t.Errorf("%s %s (-plain +coloured):\n%s", kind.name, name, diff)
			}
		}
	}
}

func trimLines(s string) string {
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(s, "")
}

// extreme has the widest figure that is still plausible in every cell.
func extreme(t *testing.T) *results.Report {
	t.Helper()
	r, faulty := sample(t, "normal"), sample(t, "faults")
	usual := r.Runs[1]
	r.Rounds = 12
	r.Workload.Clients, r.Workload.Instances, r.Workload.Keys = 100_000, 10_000, 100_000
	timeout := r.Workload.TTL
	r.Workload.Timeout, r.Workload.Think = &timeout, workloads.Fixed(time.Duration(timeout))
	r.Workload.Work, r.Workload.Coalesce = workloads.WorkCounter, true
	r.Workload.Faults = faulty.Workload.Faults
	r.Environment.CPUModel = strings.Repeat("Very Long Processor Name ", 6)
	r.Redis.Address = strings.Repeat("a-host-name-without-a-break", 6) + ":6379"
	r.Warnings = []string{strings.Repeat("word ", 60), strings.Repeat("x", 300), strings.Repeat("錠", 90)}
	names := []string{
		"spin:backoff=decorrelated,base=1.5ms,cap=100.25ms,multiplier=1.75",
		strings.Repeat("name", 20), strings.Repeat("錠", 30), "pubsub",
	}
	r.Strategies, r.Runs = nil, nil
	for _, name := range names {
		r.Strategies = append(r.Strategies, results.Strategy{
			Name: name, Claims: []string{"exclusion"},
			Caveat: "breaks " + strings.Repeat("often ", 40),
		})
		for round := range 12 {
			run := usual
			run.Strategy, run.Round, run.Speed.PerSecond = name, round+1, 123_456
			widest(&run, faulty.Runs[2].Faults)
			if round > 0 && name != "pubsub" {
				run.Invalid = []string{strings.Repeat("reason ", 30)}
			}
			if name == "pubsub" {
				run.Invalid = []string{"every one"}
			}
			r.Runs = append(r.Runs, run)
		}
	}
	return r
}

func widest(run *results.Run, faults []results.Fault) {
	run.Faults = faults
	for i := range run.Faults {
		for j := range run.Faults[i].Injections {
			run.Faults[i].Injections[j] = results.Injection{
				RecoveryNS: new(int64(123_456_789)), Stall: &results.Bound{NS: 123_456_789, AtLeast: true},
				Overlaps: 99_999, Late: 99_999, LateNS: 123_456_789, LostWakeUps: 99_999,
			}
		}
	}
	long := func() *results.Bound { return &results.Bound{NS: 123_456_789, AtLeast: true} }
	run.Speed.Utilisation, run.Speed.ServedPerSecond = 1.234, 123_456
	run.Speed.Stall, run.Speed.Hold.MeanNS, run.Speed.HoldAsked = new(int64(4_567_000_000)), new(1.5e6), new(1e6)
	for _, d := range []*results.Distribution{
		&run.Speed.Handoff, &run.Speed.Hold, &run.Speed.Release, &run.Waiting.PerAcquisition, &run.Waiting.PerClient,
	} {
		d.P50, d.P99, d.Max = long(), long(), long()
	}
	run.Waiting.Open, run.Waiting.TimedOut = 99_999, 99_999
	run.Fairness = results.Fairness{
		AcquisitionsMin: 12_345, AcquisitionsMax: 99_999, Jain: new(0.987),
		Starved: new(99_999), LongestWait: long(),
	}
	run.Fairness.PassesWithin = new(99.9)
	run.Effort = results.Effort{Attempts: new(12_345.0), WakeUps: new(12_345.0), Futile: new(12_345.0)}
	window := run.Server.Window
	window.BytesIn, window.BytesOut = new(window.Acquisitions*123_456), new(window.Acquisitions*123_456)
	window.Calls, window.RoundTrips = new(window.Acquisitions*12_345), new(window.Acquisitions*12_345)
	window.CPU, window.OtherTraffic = new(6.17), new(99.9)
	run.Server.Peak = &results.ServerPeak{
		Clients: new(int64(99_999)), Subscriptions: new(int64(99_999)),
		MemoryBytes: new(int64(123_000_000)),
	}
	run.Safety = results.Safety{
		Overlaps: 99_999, ExpiredOverlaps: 99_999, FencedLeases: 1, FencingRegression: 99_999, LostLeases: 99_999,
		LeftoverCount: new(int64(99_999)), Hung: 99_999, LostUpdates: new(int64(99_999)),
		Leftovers: []string{strings.Repeat("key", 80)},
		Broken:    []string{"exclusion: " + strings.Repeat("n", 200), "fencing: x", "FIFO: y"},
	}
	run.Errors = []results.ErrorCount{{Error: strings.Repeat("error", 60), Count: 99_999}}
}

func TestTablesFitTheirWidth(t *testing.T) {
	for _, kind := range kinds {
		reports := kind.reports(t)
		reports["extreme"], reports["extreme and valid"] = extreme(t), extreme(t)
		for i := range reports["extreme and valid"].Runs {
			reports["extreme and valid"].Runs[i].Invalid = nil
		}
		for name, report := range reports {
			for _, color := range []bool{false, true} {
				for line := range strings.Lines(kind.write(t, report, color)) {
					line = escapes.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
					if width := layout.TextWidth(line); width > kind.width {
						t.Errorf("%s %s: %d columns: %s", kind.name, name, width, line)
					}
				}
			}
		}
	}
}

func TestTableOfLongNamesLosesNone(t *testing.T) {
	r := extreme(t)
	flat := strings.NewReplacer("\n", "", " ", "").Replace(draw(t, r, false))
	if name := r.Strategies[0].Name; !strings.Contains(flat, "reason") || !strings.Contains(flat, name) {
		t.Errorf("%q is not in the table", name)
	}
}
