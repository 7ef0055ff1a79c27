package trend

import (
	"bytes"
	"fmt"
	"image/png"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

// grown is a history of 40 reports: from the 21st on a tenth slower, from the 31st
// on with a command less.
func grown() []Entry {
	random := rand.New(rand.NewPCG(1, 2))
	var history []Entry
	for i := range 40 {
		rate, commands := 800.0, 7.0
		if i >= 20 {
			rate = 720
		}
		if i >= 30 {
			commands = 6
		}
		history = append(history, Entry{
			Schema: Schema, Time: time.Date(2026, 3, 1+i, 12, 0, 0, 0, time.UTC), Commit: fmt.Sprintf("c%02d", i+1), Strategy: "pubsub",
			Conditions: "abcd1234", About: "500 clients, 1 keys, hold 1ms · Redis 8.0.3 container · 2 × Xeon", Runs: 5,
			Metrics: map[string]float64{"acq_per_s": rate * (1 + 0.02*random.NormFloat64()), "commands_per_acq": commands},
		})
	}
	return history
}

func metrics(t *testing.T, names ...string) []compare.Metric {
	t.Helper()
	var all []compare.Metric
	for _, name := range names {
		m, err := compare.ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func TestChangesOfAHistory(t *testing.T) {
	history := grown()
	history[3], history[30] = history[30], history[3] // the order of the file is not that of time
	all := Build(history, metrics(t, "acq_per_s", "commands_per_acq", "wait_p99"), 500, DefaultRules())
	if len(all) != 2 || len(all[0].Changes) != 1 || len(all[1].Changes) != 1 {
		t.Fatalf("%d series: %+v", len(all), all)
	}
	slower, cheaper := all[0].Changes[0], all[1].Changes[0]
	if slower.Commit != "c21" || slower.Verdict != compare.Worse || slower.Delta > -0.08 || slower.Delta < -0.12 {
		t.Errorf("slower: %+v", slower)
	}
	if cheaper.Commit != "c31" || cheaper.Verdict != compare.Better || cheaper.Before != 7 || cheaper.After != 6 {
		t.Errorf("cheaper: %+v", cheaper)
	}
	if short := Build(history, metrics(t, "commands_per_acq"), 9, DefaultRules())[0]; len(short.Points) != 9 || len(short.Changes) != 0 {
		t.Errorf("the last nine: %+v", short)
	}
	history[39].Conditions = "another"
	if all := Build(history, metrics(t, "acq_per_s"), 500, DefaultRules()); len(all) != 2 || len(all[1].Points) != 1 {
		t.Errorf("another machine is no series of its own: %+v", all)
	}
}

func TestGolden(t *testing.T) {
	all := Build(grown(), metrics(t, "acq_per_s", "commands_per_acq"), 500, DefaultRules())
	for name, write := range map[string]func(*bytes.Buffer) error{
		"grown.txt":  func(b *bytes.Buffer) error { return WriteText(b, all) },
		"grown.svg":  func(b *bytes.Buffer) error { return WriteSVG(b, all) },
		"grown.json": func(b *bytes.Buffer) error { return WriteJSON(b, all[1:]) },
		"empty.txt":  func(b *bytes.Buffer) error { return WriteText(b, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := write(&got); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", name+".golden"), got.String())
		})
	}
}

func TestPNG(t *testing.T) {
	for _, all := range [][]Series{nil, Build(grown(), metrics(t, "acq_per_s"), 500, DefaultRules())} {
		var b bytes.Buffer
		if err := WritePNG(&b, all); err != nil {
			t.Fatal(err)
		}
		if picture, err := png.Decode(&b); err != nil || picture.Bounds().Dx() < 500 {
			t.Errorf("no picture: %v", err)
		}
	}
}

func TestHistoryComesBackAsWritten(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, grown()); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(b.String(), "\n"); lines != 40 {
		t.Errorf("%d lines", lines)
	}
	got, err := Read(strings.NewReader("\n"+b.String()), "h.jsonl")
	if err != nil || cmp.Diff(grown(), got, cmpopts.IgnoreFields(Entry{}, "Place")) != "" {
		t.Errorf("%v, (-written +read):\n%s", err, cmp.Diff(grown(), got, cmpopts.IgnoreFields(Entry{}, "Place")))
	}
}

func TestReadNamesEveryBadLine(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, grown()[:2]); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(b.String(), "\n")
	document := first + "\nhello\n" + second + `{"schema":"lockbench/history/9"}` + "\n" + first[:40]
	got, err := Read(strings.NewReader(document), "h.jsonl")
	if len(got) != 2 || err == nil {
		t.Fatalf("%d entries, error %v", len(got), err)
	}
	for _, want := range []string{"h.jsonl:2: not a line of a history", `h.jsonl:4: its schema is "lockbench/history/9"`, "h.jsonl:5: not a line"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestEntriesOfAReport(t *testing.T) {
	good := func(rate float64) results.Run {
		return results.Run{Strategy: "spin", Speed: results.Speed{PerSecond: rate}}
	}
	bad := good(1)
	bad.Invalid = []string{"why"}
	report := compare.Report{File: "r.json", Report: &results.Report{
		Strategies: []results.Strategy{{Name: "spin"}, {Name: "fair"}},
		Runs:       []results.Run{good(10), good(30), bad, good(20), {Strategy: "fair", Partial: true}},
	}}
	entries := Entries(report, "c1")
	if len(entries) != 1 || entries[0].Strategy != "spin" || entries[0].Runs != 3 || entries[0].Metrics["acq_per_s"] != 20 {
		t.Fatalf("%+v", entries)
	}
	before := entries[0].Conditions
	report.Environment.Go = "go9"
	if Entries(report, "c1")[0].Conditions != before {
		t.Error("another Go ends the history")
	}
	report.Workload.Clients = 7
	if Entries(report, "c1")[0].Conditions == before {
		t.Error("another workload is the same history")
	}
}
