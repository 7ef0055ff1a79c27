package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMain lets the test be one of the processes that it measures with.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{generator}) {
		main()
		return
	}
	os.Exit(m.Run())
}

// made is a run whose figures can be checked by hand.
func made(strategy string, speed float64, p99 time.Duration, atLeast bool, spread int64, cpu float64) results.Run {
	return results.Run{
		Strategy: strategy, Round: 1,
		Speed:    results.Speed{PerSecond: speed, Utilisation: speed / 1000, Gap: new(1e9/speed - 1e6)},
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
	w := s.workload(time.Second, window, 1)
	var named []results.Strategy
	for _, run := range runs {
		named = append(named, results.Strategy{Name: run.Strategy})
	}
	return &results.Report{
		Schema: results.Schema, Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Environment: results.Environment{OS: "linux", Arch: "amd64", CPUs: 2, CPUModel: "Test CPU", Go: "go1.26.0"},
		Redis:       results.Redis{Source: "process", Version: "7.0.15", Network: "loopback"},
		Workload:    w, Rounds: 1, Strategies: named, Runs: runs,
	}
}

// elevenRounds writes the reports of two scenarios; handoff's speed is 1.3 times the best
// peer's but for one round, and the best peer is not always the same.
func elevenRounds(t *testing.T, all []scenario) string {
	t.Helper()
	folder := t.TempDir()
	for _, s := range all {
		if s.name != "free-hold0" && s.name != "lone50-hold0" && s.name != "lone50-hold1ms" && s.name != "crowds-hold1ms" {
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
				made("redsync", first, 2*time.Second, s.hold == 0, 40, 100e-6),
				made("redislock", second, time.Second, false, 30, 80e-6+float64(n)*1e-6),
				made("spin", 350, 3*time.Second, false, 50, 40e-6),
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
	all := everything(nil)
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
			m.add(reportOf(small, time.Second, r...))
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
}

// small is a scenario of one client.
var small = scenario{deployment: deployment{clients: 1, instances: 1, keys: 1}}

// The first of ours is judged, whatever its name; others' locks never are.
func TestTargetsFindOurs(t *testing.T) {
	var m measured
	m.add(reportOf(small, time.Second,
		made("spin", 100, time.Second, false, 0, 2), made("redsync:tuned=true", 50, time.Second, false, 0, 2),
		made("gated:redsync", 500, time.Second, false, 0, 2), made("handoff:pipeline=true", 300, time.Second, false, 0, 1)))
	judged := target{figure: speed, rivals: isRival}
	if got := judged.of(m); got != "handoff:pipeline=true" {
		t.Errorf("%q is judged", got)
	}
	if values, best := judged.values(m); len(values) != 1 || values[0] != 3 || counted(best) != "spin (1)" {
		t.Errorf("the ratios to the best of all are %v, best %s", values, counted(best))
	}
	judged.rivals = isPeer
	if values, best := judged.values(m); len(values) != 1 || values[0] != 6 || counted(best) != "redsync:tuned=true (1)" {
		t.Errorf("the ratios to the best library are %v, best %s", values, counted(best))
	}
}

func TestFlags(t *testing.T) {
	var help strings.Builder
	set, err := parse([]string{"-quick", "-rounds", "4"}, &help)
	if err != nil {
		t.Fatal(err)
	}
	if set.rounds != 4 || set.window != 500*time.Millisecond || set.out != "-" {
		t.Errorf("-quick -rounds 4 is %+v", set)
	}
	for _, args := range [][]string{{"-rounds", "0"}, {"-window", "0s"}, {"-window", "-1s"}, {"word"}} {
		if _, err := parse(args, &help); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	if _, err := scenarios(settings{scenarios: "hold2"}); err == nil || !strings.Contains(err.Error(), "crowds-hold1ms") {
		t.Errorf("an unknown scenario: %v", err)
	}
	if _, err := scenarios(settings{strategies: "spin,no-such-lock"}); err == nil || !strings.Contains(err.Error(), "no-such-lock") {
		t.Errorf("an unknown strategy: %v", err)
	}
	chosen, err := scenarios(settings{scenarios: "one,far-hold0", strategies: "handoff:linger=0s,spin:base=2ms,cap=4ms"})
	if err != nil || len(chosen) != 3 || chosen[2].name != "far-hold0" || !slices.Equal(chosen[0].strategies, []string{"handoff:linger=0s", "spin:base=2ms,cap=4ms"}) {
		t.Errorf("three scenarios of two strategies: %+v, %v", chosen, err)
	}
}

// Every scenario can be run, and every target is of one.
func TestScenarios(t *testing.T) {
	clients := map[string]int{}
	for _, s := range everything(nil) {
		clients[s.name] = s.clients
		w := s.workload(time.Second, time.Second, 1)
		if err := w.Validate(); err != nil || w.Clients*max(s.processes, 1) != s.clients || w.Instances*max(s.processes, 1) != s.instances {
			t.Errorf("%s: %d clients in %d instances a process, %v", s.name, w.Clients, w.Instances, err)
		}
		if ours := slices.IndexFunc(s.strategies, isOurs); ours != 0 {
			t.Errorf("%s begins with none of ours: %q", s.name, s.strategies)
		}
		if _, missing := available(append([]string{"no-such-lock"}, s.strategies[1:]...)); !slices.Equal(missing, []string{"no-such-lock"}) {
			t.Errorf("%s: there are no %q", s.name, missing)
		}
	}
	for _, target := range targets() {
		if clients[target.scenario] == 0 {
			t.Errorf("a target is of %q, which is no scenario", target.scenario)
		}
	}
}

// The whole way, each way there is to measure once: run, save, read, write.
func TestMeasuresAndWrites(t *testing.T) {
	t.Parallel()
	folder, out := t.TempDir(), filepath.Join(t.TempDir(), "page.md")
	measure := func(args ...string) string {
		var progress strings.Builder
		err := run(t.Context(), append([]string{
			"-quick", "-window", "300ms", "-warmup", "10ms", "-redis", "process", "-data", folder, "-out", out,
		}, args...), &strings.Builder{}, &progress)
		if err != nil {
			t.Fatalf("%v\n%s", err, &progress)
		}
		page, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(page)
	}
	measure("-scenarios", "one-hold0,far-hold1ms", "-strategies", "spin,redislock")
	page := measure("-scenarios", "free-hold0", "-strategies", "spin")
	for _, want := range []string{
		"## One client, hold 0", "`one-hold0`: 1 client, 1 instance, 1 key; 1 round of 300ms", "| `redislock` |",
		"`far-hold1ms`: 20 clients, 20 instances", "`free-hold0`: 50 clients, 1 instance, 10000 keys",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	measured, err := read(folder, everything(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range measured {
		// A lease takes its answer's way, its hold and its release's way, 1 ms each.
		if reached := speed.values(m, "spin"); m.oneWay > 0 && (len(reached) != 1 || reached[0] > 1000/3) {
			t.Errorf("spin reached %v/s through a distance of %v", reached, m.oneWay)
		}
	}
}

// Processes measure together and are merged.
func TestProcesses(t *testing.T) {
	t.Parallel()
	s := scenario{deployment: deployment{clients: 3, instances: 3, keys: 1, processes: 3}}
	variants, _ := available([]string{"spin"})
	report, err := s.run(t.Context(), lockbench.Plan{
		Strategies: variants, Workload: s.workload(0, 2*time.Second, 1), Rounds: 1, Redis: lockbench.RedisOptions{Address: "process"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Parts) != 3 || report.Workload.Clients != 3 || len(report.Runs) != 1 || report.Runs[0].Speed.Acquisitions == 0 {
		t.Errorf("%d processes with %d clients in all made %+v", len(report.Parts), report.Workload.Clients, report.Runs)
	}
}

// Where no process sees who waits in another, the gap is what holds leave of the time.
func TestGapOfProcesses(t *testing.T) {
	run := made("spin", 500, time.Second, false, 0, 1)
	run.Speed.Gap, run.Speed.Hold.MeanNS = nil, new(1.25e6)
	report := reportOf(small, time.Second, run)
	var alone, merged, several measured
	alone.add(report)
	report.Parts = make([]results.Part, 2)
	merged.add(report)
	report.Workload.Keys = 2
	several.add(report)
	if got := gap.values(merged, "spin"); len(got) != 1 || got[0] != 0.75e6 {
		t.Errorf("500 holds a second of 1.25 ms leave a gap of %v", got)
	}
	if values := append(gap.values(alone, "spin"), gap.values(several, "spin")...); len(values) > 0 {
		t.Errorf("a gap was made up: %v", values)
	}
}

// A process that cannot measure is told of, and keeps nobody waiting.
func TestAProcessThatFails(t *testing.T) {
	t.Parallel()
	s := scenario{deployment: deployment{clients: 2, instances: 2, keys: 1, processes: 2}}
	report, err := s.run(t.Context(), lockbench.Plan{
		Strategies: nil, Workload: s.workload(0, time.Second, 1), Rounds: 1, Redis: lockbench.RedisOptions{Address: "process"},
	})
	if report != nil || err == nil || !strings.Contains(err.Error(), "process 2") {
		t.Errorf("without a strategy: %v, %v", report, err)
	}
}
