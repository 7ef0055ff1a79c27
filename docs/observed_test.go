package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/apps/observe"
	"github.com/lockbench/lockbench/results"
)

// observedModes lists the kinds of runs in bin/observed, with their description on the page.
var observedModes = []struct{ file, title, about string }{
	{"1-closed", "Closed loop", "8 clients for 2 s, hold 2 ms, think 5 ms"},
	{"2-open", "Open loop", "60 arrivals per second for 3 s, hold 2 ms"},
	{"3-timeout", "Timeouts", "8 clients, hold 20 ms, timeout 60 ms"},
	{"4-expiry", "Expiries", "4 clients, TTL 200 ms, holds of 20 to 300 ms"},
	{"5-crash", "Crashes", "4 clients, TTL 500 ms, a holder crashes each second"},
}

// TestObserved writes docs/evidence/OBSERVED.md from the documents that "make observed" writes to bin/observed.
func TestObserved(t *testing.T) {
	root := os.Getenv("LOCKBENCH_OBSERVED")
	if root == "" {
		t.Skip("make observed writes the page")
	}
	b := new(strings.Builder)
	b.WriteString("# What observe sees\n\nWritten by `make observed`: each lock runs under `lockbench observe --exec`. " +
		"Each cell has the figure that observe reconstructed from MONITOR / the figure that the run itself counted. " +
		"observe also sees the commands of clients after the run's window, so it counts up to two leases more per client. " +
		"observe measures a hold at Redis, which includes the network delays of acquire and release. It measures a wait " +
		"from the first try that Redis received. Timed out counts the waits that ended without a lease, + the owner " +
		"values that were tried only once and in vain: a client that takes a new value for its next tries counts as two. " +
		"handoff passes leases on within a process, which observe cannot see. – means that the run does not count the " +
		"figure.\n")
	tables := new(strings.Builder)
	var reports []*results.Report
	for _, mode := range observedModes {
		runs, err := filepath.Glob(filepath.Join(root, "bin/observed", mode.file+"-*-run.json"))
		if err != nil || len(runs) == 0 {
			t.Fatalf("there is no run of %s: make observed", mode.file)
		}
		fmt.Fprintf(tables, "\n## %s\n\n%s.\n\n| lock | leases | tries | wait p50 | wait p99 | hold p50 | timed out | "+
			"expired, lost | unsafe |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n", mode.title, mode.about)
		for _, file := range runs {
			row, report, err := observedRow(file)
			if err != nil {
				t.Fatal(err)
			}
			tables.WriteString(row)
			reports = append(reports, report)
		}
	}
	first := reports[0]
	fmt.Fprintf(b, "\nOn %s %s, %s, %d CPUs, %s\n%s", first.Redis.Name, first.Redis.Version, first.Environment.CPUModel,
		first.Environment.CPUs, noise(reports, "")+".", tables)
	page := filepath.Join(root, "docs/evidence/OBSERVED.md")
	if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// observedRow reads the report in file and the document in which observe described the same run. It returns the report,
// and a table row that compares the figures of the two.
func observedRow(file string) (string, *results.Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", nil, fmt.Errorf("read a run: %w", err)
	}
	report, err := results.ReadJSON(strings.NewReader(string(text)))
	if err != nil || len(report.Runs) == 0 {
		return "", nil, fmt.Errorf("%s: %d runs: %w", file, len(report.Runs), err)
	}
	if text, err = os.ReadFile(strings.TrimSuffix(file, "-run.json") + "-seen.json"); err != nil {
		return "", nil, fmt.Errorf("read what was observed: %w", err)
	}
	var seen observe.Document
	if err := json.Unmarshal(text, &seen); err != nil {
		return "", nil, fmt.Errorf("%s: %w", file, err)
	}
	run, all := &report.Runs[0], &seen.All
	tries, given := "–", fmt.Sprint(all.GaveUp)
	if all.TriedOnce > 0 {
		given += fmt.Sprintf(" + %d", all.TriedOnce)
	}
	if a := run.Effort.Attempts; a != nil && all.TriesPer != nil {
		tries = fmt.Sprintf("%.2f / %.2f", *all.TriesPer, *a)
	} else if all.TriesPer != nil {
		tries = fmt.Sprintf("%.2f / –", *all.TriesPer)
	}
	return fmt.Sprintf("| `%s` | %d / %d | %s | %v / %v | %v / %v | %v / %v | %s / %d | %d / %d | %d |\n", run.Strategy,
		all.Acquisitions, run.Speed.Acquisitions, tries, all.Wait.P50, run.Waiting.PerAcquisition.P50, all.Wait.P99,
		run.Waiting.PerAcquisition.P99, all.Hold.P50, run.Speed.Hold.P50, given, run.Waiting.TimedOut, all.Expired,
		run.Safety.LostLeases, all.OthersDeleted+all.Overwritten+all.WithoutTTL+all.SharedValue), report, nil
}
