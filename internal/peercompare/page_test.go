package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
)

var update = flag.Bool("update", false, "write the golden files")

// made is a run whose figures can be checked by hand.
func made(strategy string, speed float64, p99 time.Duration, atLeast bool, spread int64, cpu float64) results.Run {
	return results.Run{
		Strategy: strategy, Round: 1,
		Speed:    results.Speed{PerSecond: speed, Utilisation: speed / 1000},
		Waiting:  results.Waiting{PerClient: results.Distribution{P99: &results.Bound{NS: int64(p99), AtLeast: atLeast}}},
		Fairness: results.Fairness{TurnsMin: 10, TurnsMax: 10 + spread, Jain: new(0.9)},
		Server: results.Server{Window: &results.ServerDelta{
			Acquisitions: 1000, CPU: new(cpu * 1000), Calls: new(int64(5000)), RoundTrips: new(int64(2000)),
		}},
		Labels: []string{"generator-bound"},
	}
}

// reportOf is one round.
func reportOf(s scenario, window time.Duration, runs ...results.Run) *results.Report {
	w, err := s.workload(time.Second, window, 1)
	if err != nil {
		panic(err)
	}
	return &results.Report{
		Schema: results.Schema, Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Environment: results.Environment{OS: "linux", Arch: "amd64", CPUs: 2, CPUModel: "Test CPU", Go: "go1.26.0"},
		Redis:       results.Redis{Source: "process", Version: "7.0.15", Network: "loopback"},
		Workload:    w, Rounds: 1, Runs: runs,
	}
}

// elevenRounds writes the reports of two scenarios; handoff's speed is 1.3 times the best
// peer's but for one round, and the best peer is not always the same.
func elevenRounds(t *testing.T, all []scenario) string {
	t.Helper()
	folder := t.TempDir()
	for _, s := range all {
		if s.name != "hold0" && s.name != "hold1ms" && s.name != "instances50" {
			continue
		}
		for n := 1; n <= 11; n++ {
			first, second := 400.0, 300.0
			if n > 8 {
				first, second = 300, 400
			}
			handoff := 520.0
			if n == 4 {
				handoff = 200
			}
			runs := []results.Run{
				made("handoff", handoff+float64(n), 50*time.Millisecond, false, 2, 50e-6),
				made("redsync", first, 2*time.Second, s.name == "hold0", 40, 100e-6),
				made("redislock", second, time.Second, false, 30, 80e-6+float64(n)*1e-6),
				made("gated:redsync", 450, time.Second, false, 5, 60e-6),
			}
			if n == 7 { // cannot be trusted
				runs[2].Invalid = []string{"the books do not balance"}
			}
			if err := save(filepath.Join(folder, fileName(s.name, n)), reportOf(s, 20*time.Second, runs...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

func TestPage(t *testing.T) {
	all, err := every(settings{clients: 500, rounds: 11, sweep: 5, ours: "handoff"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].strategies = []string{"handoff", "redsync", "redislock", "gated:redsync"}
	}
	measured, err := read(elevenRounds(t, all), all)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "page.golden", write(measured, []string{"example.org/peer v1.2.3"}))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), run with -update if it should:\n%s", path, diff)
	}
}

// A ratio is taken within a round, to whoever was best in it.
func TestRatiosArePaired(t *testing.T) {
	rounds := func(runs ...[]results.Run) measured {
		var m measured
		for _, r := range runs {
			m.add(reportOf(scenario{clients: 1, instances: 1}, time.Second, r...))
		}
		return m
	}
	m := rounds(
		[]results.Run{made("ours", 200, time.Second, false, 0, 1), made("a", 100, time.Second, false, 0, 2), made("b", 50, 4*time.Second, true, 0, 4)},
		[]results.Run{made("ours", 20, 2*time.Second, true, 0, 1), made("a", 5, time.Second, false, 0, 2), made("b", 10, 4*time.Second, false, 0, 0.5)},
		[]results.Run{made("ours", 1, time.Second, false, 0, 1)}, // nobody to compare with
	)
	for _, test := range []struct {
		figure figure
		want   string
		best   string
	}{
		{speed, "2 2", "a (1), b (1)"},
		{p99, "1 unbounded", "a (2)"},
		{redisCPU, "0.5 2", "a (1), b (1)"},
	} {
		ratios, best := test.figure.against(m, "ours", []string{"a", "b"})
		var got []string
		for _, r := range ratios {
			got = append(got, ratio(r))
		}
		if text := strings.Join(got, " "); text != test.want || counted(best) != test.best {
			t.Errorf("%s: %s, best %s; want %s, best %s", test.figure.name, text, counted(best), test.want, test.best)
		}
	}
	base := rounds([]results.Run{made("ours", 100, time.Second, false, 0, 1)}, []results.Run{made("ours", 10, time.Second, false, 0, 2)})
	if got := redisCPU.between(m, base, "ours"); len(got) != 2 || got[0] != 1 || got[1] != 0.5 {
		t.Errorf("CPU between scenarios is %v, want [1 0.5]", got)
	}
}

func TestWindowIsTenTimesTheLongestP99(t *testing.T) {
	for longest, want := range map[time.Duration]time.Duration{
		time.Millisecond: shortestWindow, 2 * time.Second: 20 * time.Second, time.Minute: longestWindow,
	} {
		report := reportOf(scenario{clients: 1, instances: 1}, pilot,
			made("a", 1, time.Millisecond, false, 0, 1), made("b", 1, longest, false, 0, 1))
		if got := windowFor(report); got != want {
			t.Errorf("after a p99 of %v the window is %v, want %v", longest, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	var help strings.Builder
	set, err := parse([]string{"-quick", "-rounds", "4"}, &help)
	if err != nil {
		t.Fatal(err)
	}
	if set.rounds != 4 || set.window != 2*time.Second || set.out != "-" {
		t.Errorf("-quick -rounds 4 is %+v", set)
	}
	for _, args := range [][]string{{"-rounds", "0"}, {"-clients", "0"}, {"-window", "-1s"}, {"word"}} {
		if _, err := parse(args, &help); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	if _, err := scenarios(settings{clients: 500, scenarios: "hold2"}); err == nil || !strings.Contains(err.Error(), "hold1ms") {
		t.Errorf("an unknown scenario: %v", err)
	}
	for _, s := range []string{"handoff,no-such-lock", ""} {
		all, err := every(settings{clients: 500, rounds: 1, sweep: 1, ours: s})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if strings.Contains(strings.Join(one.strategies, " "), "no-such-lock") {
				t.Errorf("%s has a strategy that is not registered", one.name)
			}
			w, err := one.workload(time.Second, time.Second, 1)
			if err != nil || w.Validate() != nil {
				t.Errorf("%s: %v, %v", one.name, err, w.Validate())
			}
		}
	}
}

// The whole way once: measure, save, read, write.
func TestMeasuresAndWrites(t *testing.T) {
	out := filepath.Join(t.TempDir(), "page.md")
	var progress strings.Builder
	err := run(t.Context(), []string{
		"-quick", "-clients", "4", "-rounds", "1", "-window", "50ms", "-warmup", "10ms", "-scenarios", "hold0",
		"-redis", "process", "-data", t.TempDir(), "-out", out,
	}, &strings.Builder{}, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	page, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## Hold 0", "`rueidislock:tuned=true`", "`gated:redislock`", "1 rounds of 50ms"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}
