package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// noise returns one of twelve factors near 1, which imitate the scatter of a quiet machine. The index i may exceed 11:
// noise(12) is noise(0).
func noise(i int) float64 {
	return []float64{1.012, 0.991, 1.004, 0.987, 1.009, 0.996, 1.001, 1.015, 0.993, 1.006, 0.985, 1.011}[i%12]
}

// side returns the reports of a build, each with one run of spin. It multiplies the times of the runs by slower, and
// the numbers of attempts and commands by dearer. If two sides have different offsets, their noise differs and their
// start times alternate.
func side(name string, reports int, offset int, slower, dearer float64) Side {
	s := Side{Name: name}
	first := time.Date(2026, 1, 1, 0, 0, len(name)+offset, 0, time.UTC)
	for i := range reports {
		run := results.Run{Strategy: "spin", Round: 1, Fairness: results.Fairness{Starved: new(0)}}
		run.Speed.PerSecond = 806 / slower * noise(i+offset)
		run.Speed.Utilisation = 0.82 / slower * noise(i+offset+1)
		run.Speed.Handoff.P50 = &results.Bound{NS: int64(241_300 * slower * noise(i+offset+2))}
		run.Waiting.PerAcquisition.P99 = &results.Bound{NS: int64(1.3e9 * slower * noise(i+offset+3)), AtLeast: i == 2}
		run.Effort.Attempts = new(2.25 * dearer)
		run.Effort.Futile = new(0.0)
		run.Server.Window = &results.ServerDelta{
			Acquisitions: 4000, Calls: new(int64(28_000 * dearer)),
			CPU: new(0.8 * noise(i+offset+4)),
		}
		w := workloads.Default()
		w.Hold, w.Seed = workloads.Fixed(time.Millisecond), int64(i)
		s.Reports = append(s.Reports, results.File{Name: fmt.Sprintf("%s-%d.json", name, i+1), Report: &results.Report{
			Schema: results.Schema, Tool: results.Tool{Name: "lockbench", Version: name + "-1"}, Workload: w,
			Started: first.Add(time.Duration(i) * time.Hour),
			Environment: results.Environment{
				OS: "linux", Arch: "amd64", CPUs: 2, CPUModel: "Xeon",
				TimerOvershoot: int64(i),
			},
			Redis: results.Redis{
				Source: "process", Version: "8.0.3",
				Address: fmt.Sprintf("127.0.0.1:%d", 7000+i),
			},
			Strategies: []results.Strategy{{Name: "spin"}},
			Runs:       []results.Run{run},
		}})
	}
	return s
}

type method func(base, head Side, rules Rules) (*Comparison, error)

func do(t *testing.T, compare method, base, head Side) *Comparison {
	t.Helper()
	c, err := compare(base, head, DefaultRules())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func verdicts(c *Comparison, strategy string) map[string]results.Verdict {
	found := map[string]results.Verdict{}
	for _, s := range c.Strategies {
		for _, r := range s.Results {
			if s.Name == strategy {
				found[r.Metric] = r.Verdict
			}
		}
	}
	return found
}

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		name            string
		method          method
		runs            int
		slower, dearer  float64
		all, rate, cost results.Verdict
	}{
		{"same", Unpaired, 10, 1, 1, NoneFound, NoneFound, NoneFound},
		{"slower", Unpaired, 10, 1.2, 1, Worse, Worse, NoneFound},
		{"faster", Unpaired, 10, 0.8, 1, Better, Better, NoneFound},
		{"slower by too little", Unpaired, 10, 1.04, 1, NoneFound, NoneFound, NoneFound},
		{"one command more", Unpaired, 10, 1, 8.0 / 7, Worse, NoneFound, Worse},
		{"a count by too little", Unpaired, 10, 1, 1.01, NoneFound, NoneFound, NoneFound},
		{"six a side", Unpaired, 6, 1.2, 8.0 / 7, Worse, Worse, Worse},
		{"four a side", Unpaired, 4, 1.2, 8.0 / 7, Worse, Worse, Worse},
		{"three a side", Unpaired, 3, 1.2, 8.0 / 7, Undecided, Undecided, Undecided},
		{"one a side", Unpaired, 1, 1.2, 8.0 / 7, Undecided, Undecided, Undecided},
		{"same pairs", Paired, 12, 1, 1, NoneFound, NoneFound, NoneFound},
		{"slower pairs", Paired, 12, 1.2, 1, Worse, Worse, NoneFound},
		{"faster pairs", Paired, 12, 0.8, 1, Better, Better, NoneFound},
		{"slower pairs by too little", Paired, 12, 1.04, 1, NoneFound, NoneFound, NoneFound},
		{"one command more a pair", Paired, 12, 1, 8.0 / 7, Worse, NoneFound, Worse},
		{"six pairs", Paired, 6, 1.2, 8.0 / 7, Worse, Worse, Worse},
		{"five pairs", Paired, 5, 1.2, 8.0 / 7, Undecided, Undecided, Undecided},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := do(t, test.method, side("base", test.runs, 0, 1, 1),
				side("head", test.runs, 5, test.slower, test.dearer))
			got := verdicts(c, "spin")
			if c.Verdict != test.all || got["acq_per_s"] != test.rate || got["commands_per_acq"] != test.cost {
				t.Errorf("%s: acquisitions %s, commands %s; want %s: %s, %s", c.Verdict, got["acq_per_s"],
					got["commands_per_acq"], test.all, test.rate, test.cost)
			}
		})
	}
}

func TestInvalidRunsAreLeftOutAndReported(t *testing.T) {
	base, head := side("base", 8, 0, 1, 1), side("head", 8, 5, 1, 1)
	head.Reports[1].Runs[0].Invalid = results.PlainTexts("books")
	head.Reports[2].Runs[0].Partial = true
	base.Reports[3].Runs[0].Failure = "it fell over"
	c := do(t, Unpaired, base, head)
	if r := c.Strategies[0].Results[0]; r.Base.N != 7 || r.Head.N != 6 {
		t.Errorf("%d and %d runs", r.Base.N, r.Head.N)
	}
	want := []string{
		"base-4.json: spin round 1: failed: it fell over", "head-2.json: spin round 1: invalid: books",
		"head-3.json: spin round 1: cut short",
	}
	if diff := cmp.Diff(want, c.LeftOut.Texts()); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if r := do(t, Paired, base, head).Strategies[0].Results[0]; r.Base.N != 5 || r.Head.N != 5 {
		t.Errorf("%d and %d in pairs", r.Base.N, r.Head.N)
	}
}

func TestStrategiesOfOneSide(t *testing.T) {
	base, head := side("base", 4, 0, 1, 1), side("head", 4, 5, 1, 1)
	head.Reports[0].Strategies = append(head.Reports[0].Strategies, results.Strategy{Name: "fair"})
	c := do(t, Unpaired, base, head)
	if len(c.Strategies) != 1 || len(c.LeftOut) != 1 || c.LeftOut[0].Text != "fair: only the head measured it" {
		t.Errorf("%d strategies, left out %v", len(c.Strategies), c.LeftOut)
	}
	for _, report := range base.Reports {
		report.Strategies[0].Name, report.Runs[0].Strategy = "blpop", "blpop"
	}
	for _, compare := range []method{Unpaired, Paired} {
		if _, err := compare(base, side("head", 4, 5, 1, 1), DefaultRules()); err != ErrNothingInCommon {
			t.Errorf("error %v", err)
		}
	}
}

// If the head lacks a strategy of the base, the comparison must list that strategy as missing and count as insensitive.
func TestStrategyMissingFromHead(t *testing.T) {
	base, head := side("base", 8, 0, 1, 1), side("head", 8, 5, 1, 1)
	base.Reports[0].Strategies = append(base.Reports[0].Strategies, results.Strategy{Name: "fair"})
	for _, compare := range []method{Unpaired, Paired} {
		c := do(t, compare, base, head)
		if !slices.Equal(c.Missing, []string{"fair"}) || !strings.Contains(c.Insensitive(), "fair (the head has no run)") {
			t.Errorf("missing %v, insensitive %q", c.Missing, c.Insensitive())
		}
		if c := do(t, compare, head, base); len(c.Missing) > 0 {
			t.Errorf("a strategy that the head adds is missing: %v", c.Missing)
		}
	}
}

func TestDifferences(t *testing.T) {
	base, head := side("base", 2, 0, 1, 1), side("head", 2, 5, 1, 1)
	if found := Differences(base, head); len(found) > 0 {
		t.Errorf("ports, seeds and timers differ: %v", found)
	}
	head.Reports[0].Workload.Clients = 200
	head.Reports[1].Workload.Clients = 300
	head.Reports[1].Environment.CPUModel = "Ryzen"
	base.Reports[1].Redis.Version = "7.0.15"
	for i, s := range []Side{base, head} { // other stores are compared as Redis is
		etcd := results.Redis{Version: []string{"3.4.23", "3.7.3"}[i], Address: fmt.Sprint("127.0.0.1:", i)}
		for _, report := range s.Reports {
			report.Stores = []results.Store{{Name: "etcd", Server: etcd}}
		}
	}
	var got []string
	for _, d := range Differences(base, head) {
		got = append(got, d.String())
	}
	want := []string{
		"redis version: 8.0.3 in base-1.json, 7.0.15 in base-2.json",
		"etcd version: 3.4.23 in base-1.json, 3.7.3 in head-1.json",
		"workload clients: 100 in base-1.json, 200 in head-1.json",
		"environment cpu_model: Xeon in base-1.json, Ryzen in head-2.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	there, elsewhere := side("base", 1, 0, 1, 1), side("head", 1, 5, 1, 1)
	there.Reports[0].Redis.Source, elsewhere.Reports[0].Redis.Source = "address", "address"
	elsewhere.Reports[0].Redis.Address = "10.0.0.1:7000"
	if found := Differences(there, elsewhere); len(found) != 1 || found[0].What != "redis host" {
		t.Errorf("another server: %v", found)
	}
}

func TestSweepPointsAreComparedSeparately(t *testing.T) {
	base, head := side("base", 8, 0, 1, 1), side("head", 8, 5, 1, 1)
	for _, s := range []Side{base, head} {
		for _, report := range s.Reports {
			report.Points = []workloads.Point{{Label: "c=100"}, {Label: "c=200"}}
			report.Runs[0].Point = "c=100"
			slower := report.Runs[0]
			slower.Point = "c=200"
			if s.Name == "head" {
				slower.Speed.PerSecond /= 2
			}
			report.Runs = append(report.Runs, slower)
		}
	}
	for _, compare := range []method{Unpaired, Paired} {
		c := do(t, compare, base, head)
		if len(c.Strategies) != 2 || c.Strategies[0].Verdict != NoneFound || c.Strategies[1].Name != "spin c=200" ||
			c.Strategies[1].Verdict != Worse {
			t.Errorf("%s", c.Headline())
		}
	}
	head.Reports[0].Points = head.Reports[0].Points[:1]
	if found := Differences(base, head); len(found) != 1 || found[0].What != "workload points" {
		t.Errorf("another sweep: %v", found)
	}
}

func TestGolden(t *testing.T) {
	invalid := side("head", 8, 5, 1.2, 8.0/7)
	invalid.Reports[1].Runs[0].Invalid = results.PlainTexts("its time accounts do not balance")
	invalid.Reports[2].Runs[0].Safety.Broken = results.PlainTexts("exclusion: 3 overlaps within valid leases")
	invalid.Reports[0].Environment.Kernel = "6.1.0"
	for name, c := range map[string]*Comparison{
		"same":     do(t, Unpaired, side("base", 6, 0, 1, 1), side("head", 6, 5, 1, 1)),
		"worse":    do(t, Unpaired, side("base", 8, 0, 1, 1), invalid),
		"few":      do(t, Unpaired, side("base", 3, 0, 1, 1), side("head", 3, 5, 1, 1)),
		"pairs":    do(t, Paired, side("base", 12, 0, 1, 1), side("head", 12, 5, 1.2, 8.0/7)),
		"improved": do(t, Paired, side("base", 12, 0, 1, 1), side("head", 12, 5, 0.8, 1)),
		"noisy":    do(t, Paired, noisy(side("base", 14, 0, 1, 1), 0, 1), noisy(side("head", 14, 5, 1, 1), 0, 2)),
		"alone":    do(t, Paired, withOneClient(side("base", 14, 0, 1, 1), 7), withOneClient(side("head", 14, 5, 1, 1), 8)),
	} {
		for ending, write := range map[string]func(*bytes.Buffer) error{
			"txt":  func(b *bytes.Buffer) error { return WriteText(b, c, layout.Width, false) },
			"md":   func(b *bytes.Buffer) error { return WriteMarkdown(b, c) },
			"json": func(b *bytes.Buffer) error { return WriteJSON(b, c) },
			"xml":  func(b *bytes.Buffer) error { return WriteJUnit(b, c) },
		} {
			t.Run(name+"."+ending, func(t *testing.T) {
				var got bytes.Buffer
				if err := write(&got); err != nil {
					t.Fatal(err)
				}
				if ending == "json" && slices.Contains([]string{"same", "improved", "noisy", "alone"}, name) {
					var back Comparison // for the other fields
					if err := json.Unmarshal(got.Bytes(), &back); err != nil || cmp.Diff(*c, back) != "" {
						t.Errorf("%v, (-written +read):\n%s", err, cmp.Diff(*c, back))
					}
					return
				}
				golden.Compare(t, filepath.Join("testdata", name+"."+ending+".golden"), got.String())
			})
		}
	}
}
