package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/gate"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

const (
	rounds = 20 // rounds, each with an A/A comparison and a comparison with a slower head
	dear   = 10 // comparisons with a head that sends one more command
	pairs  = 14
)

// The comparisons use two workloads. With contended, all clients contend for one lock, so timing decides the
// throughput. With apart, they use 64 locks, so the number of commands per acquisition hardly varies.
var (
	contended = []string{"-s", gate.Strategy, "-c", "8", "--hold", "1ms", "-d", "400ms", "-w", "100ms"}
	apart     = []string{"-s", gate.Strategy, "-c", "8", "--keys", "64", "--hold", "1ms", "-d", "400ms", "-w", "100ms"}
)

// TestGate measures how often lockbench ab --all-metrics detects a slower head, and how often any of its metrics raises
// a false alarm. No two comparisons share a run. The test takes a quarter of an hour and writes a page with its results
// to the file that LOCKBENCH_GATE names.
func TestGate(t *testing.T) {
	file := os.Getenv("LOCKBENCH_GATE")
	if file == "" {
		t.Skip("takes a quarter of an hour: make gate")
	}
	if err := os.Unsetenv("LOCKBENCH_GATE"); err != nil { // lockbench would report it as a misspelt LOCKBENCH_RATE
		t.Fatal(err)
	}
	g := newWorkshop(t)
	base := g.build("base", gate.Fault{})
	same := g.build("same", gate.Fault{})
	dearer := g.build("dearer", gate.Fault{Commands: 1})

	var equal, slower, costly trials
	for round := 1; round <= rounds; round++ {
		aa := g.compare(base, same, contended)
		equal.add(aa)
		// Slow the head down by the smallest change that the A/A comparison could have detected, but by at least 10 %.
		effect := max(0.1, -*aa.primary().Detectable)
		rate := *aa.primary().Base.Median
		delay := time.Duration(effect / (1 - effect) / rate * float64(time.Second))
		slow := g.compare(base, g.build(fmt.Sprintf("slower-%d", round), gate.Fault{Delay: delay}), contended)
		slow.injected = effect
		slower.add(slow)
		t.Logf("round %d: A/A %s %+.1f %%, would find %.1f %%; injected %.1f %%: %s %+.1f %%", round,
			aa.Verdict, *aa.primary().Delta*100, -*aa.primary().Detectable*100,
			effect*100, slow.Verdict, *slow.primary().Delta*100)
		if round <= dear {
			costly.add(g.compare(base, dearer, apart))
		}
	}

	p := newProtocol(g.first)
	p.line("A/A", equal.worse(), len(equal), rarely, "at most 5 % alarms")
	mostly := func(share float64) bool { return share >= 0.9 }
	p.line("slower", slower.worse(), len(slower), mostly, "at least 90 % found")
	always := func(share float64) bool { return share == 1 }
	p.line("one command more", costly.by("commands_per_acq"), len(costly), always, "always found")
	p.describe(equal, slower, costly)
	if err := os.WriteFile(file, p.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, failed := range p.failed {
		t.Error(failed)
	}
}

// workshop builds variants of lockbench and compares them.
type workshop struct {
	t         *testing.T
	dir       string
	lockbench string
	made      int
	first     *results.Report // source of the machine and workload in the protocol
}

func newWorkshop(t *testing.T) *workshop {
	g := &workshop{t: t, dir: t.TempDir()}
	g.lockbench = filepath.Join(g.dir, "lockbench")
	g.do("go", "build", "-o", g.lockbench, "../cmd/lockbench")
	return g
}

func (g *workshop) do(name string, args ...string) {
	g.t.Helper()
	if said, err := exec.CommandContext(g.t.Context(), name, args...).CombinedOutput(); err != nil {
		g.t.Fatalf("%s %v: %v\n%s", name, args, err, said)
	}
}

// build builds a lockbench whose lock has the given fault, and returns the path of the program.
func (g *workshop) build(name string, f gate.Fault) string {
	g.t.Helper()
	file := filepath.Join(g.dir, name)
	flags := fmt.Sprintf("-X main.delay=%s -X main.commands=%d", f.Delay, f.Commands)
	g.do("go", "build", "-o", file, "-ldflags", flags, "../internal/gate/lock")
	return file
}

// trial is the comparison that one invocation of lockbench ab wrote, with the duration of the invocation. injected is
// the planted slowdown of the head, as a share of the throughput.
type trial struct {
	compare.Comparison
	took     time.Duration
	injected float64
}

// compare runs lockbench ab --all-metrics on the programs base and head, with the given flags for their runs. It fails
// the test if the exit code of ab contradicts the verdict in the report.
func (g *workshop) compare(base, head string, flags []string) trial {
	g.t.Helper()
	g.made++
	runs := filepath.Join(g.dir, fmt.Sprintf("runs-%d", g.made))
	out := runs + ".json"
	args := []string{
		"ab", base, head, "-q", "--all-metrics", "--pairs", fmt.Sprint(pairs), "--seed", fmt.Sprint(g.made),
		"--keep", runs, "-o", "json=" + out, "--",
	}
	cmd := exec.CommandContext(g.t.Context(), g.lockbench, append(args, flags...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	begun := time.Now()
	err := cmd.Run()
	tr := trial{took: time.Since(begun)}
	content, readErr := os.ReadFile(out)
	if readErr != nil {
		g.t.Fatalf("comparison %d: %v\n%s", g.made, err, &said)
	}
	if err := json.Unmarshal(content, &tr.Comparison); err != nil {
		g.t.Fatal(err)
	}
	want := map[results.Verdict]int{compare.Worse: command.ExitRegression}[tr.Verdict]
	if code := cmd.ProcessState.ExitCode(); code != want {
		g.t.Fatalf("comparison %d is %s and ended with %d, not %d\n%s", g.made, tr.Verdict, code, want, &said)
	}
	if g.first == nil {
		g.first = g.report(filepath.Join(runs, "base-001.json"))
	}
	return tr
}

func (g *workshop) report(file string) *results.Report {
	g.t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		g.t.Fatal(err)
	}
	report, err := results.ReadJSON(bytes.NewReader(content))
	if err != nil {
		g.t.Fatal(err)
	}
	return report
}

func (tr trial) primary() compare.Result {
	for _, r := range tr.Strategies[0].Results {
		if r.Metric == tr.Rules.Primary && r.Detectable != nil && *r.Detectable < 0 && !math.IsInf(*r.Detectable, 0) {
			return r
		}
	}
	panic("a comparison without its primary metric")
}

// trials collects comparisons of the same kind, such as A/A.
type trials []trial

func (ts *trials) add(t trial) { *ts = append(*ts, t) }

// worse returns the number of comparisons with the verdict worse.
func (ts trials) worse() int {
	n := 0
	for _, t := range ts {
		if t.Verdict == compare.Worse {
			n++
		}
	}
	return n
}

// by returns the number of comparisons in which the head is worse by the given metric.
func (ts trials) by(metric string) int {
	n := 0
	for _, t := range ts {
		if worseBy(t.Comparison, metric) {
			n++
		}
	}
	return n
}

func worseBy(c compare.Comparison, metric string) bool {
	return slices.ContainsFunc(c.Strategies[0].Results, func(r compare.Result) bool {
		return r.Metric == metric && r.Verdict == compare.Worse
	})
}

func (ts trials) medianOf(figure func(trial) float64) float64 {
	var all []float64
	for _, t := range ts {
		all = append(all, figure(t))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func (ts trials) slowest() time.Duration {
	longest := time.Duration(0)
	for _, t := range ts {
		longest = max(longest, t.took)
	}
	return longest
}

// protocol is the Markdown page with the results of TestGate or TestSessions.
type protocol struct {
	bytes.Buffer
	failed []string
}

func newProtocol(r *results.Report) *protocol {
	p := &protocol{}
	fmt.Fprintf(p, "Measured on %s with %s, %d × %s, Redis %s.\n\n", time.Now().UTC().Format("2006-01-02"),
		r.Environment.Go, r.Environment.CPUs, r.Environment.CPUModel, r.Redis.Version)
	fmt.Fprintln(p, "| comparisons | called worse | of | share | 95 % interval | wanted | |")
	fmt.Fprintln(p, "|---|---:|---:|---:|---:|---|---|")
	return p
}

// line adds a row for one kind of comparison. worse is the number of comparisons that found the head worse, and of is
// the number of all comparisons. line records a failure unless the function good accepts the share worse/of. wanted
// describes the accepted shares in words.
func (p *protocol) line(kind string, worse, of int, good func(share float64) bool, wanted string) {
	share := float64(worse) / float64(of)
	low, high := clopperPearson(worse, of)
	verdict := "held"
	if !good(share) {
		verdict = "**not held**"
		p.failed = append(p.failed, fmt.Sprintf("%s: %d of %d called worse, wanted %s", kind, worse, of, wanted))
	}
	fmt.Fprintf(p, "| %s | %d | %d | %.1f %% | %.1f to %.1f %% | %s | %s |\n",
		kind, worse, of, share*100, low*100, high*100, wanted, verdict)
}

// rarely reports whether a share of false alarms is at most 5 %.
func rarely(share float64) bool { return share <= 0.05 }

// describe adds the effect sizes and durations of the comparisons to the page.
func (p *protocol) describe(equal, slower, costly trials) {
	effect := func(t trial) float64 { return *t.primary().Delta * 100 }
	fmt.Fprintf(p, "\n- A/A and slower: `%s`, %d pairs each; one command more: `%s`\n",
		strings.Join(contended, " "), pairs, strings.Join(apart, " "))
	fmt.Fprintf(p, "- A/A: the change of acquisitions/s is %+.1f %% in the median; "+
		"a slowdown of %.1f %% would have been found\n",
		equal.medianOf(effect), equal.medianOf(func(t trial) float64 { return -*t.primary().Detectable * 100 }))
	fmt.Fprintf(p, "- slower: injected were %.1f %% in the median, the larger of 10 %% and what the A/A comparison "+
		"just before would have found; it came to %+.1f %%\n",
		slower.medianOf(func(t trial) float64 { return t.injected * 100 }), slower.medianOf(effect))
	fmt.Fprintf(p, "- %d of %d slower heads were found by acquisitions/s itself, the others by handoff or another "+
		"metric\n", slower.by("acq_per_s"), len(slower))
	fmt.Fprintf(p, "- the longest comparison took %v\n",
		max(equal.slowest(), slower.slowest(), costly.slowest()).Round(time.Second))
}

// clopperPearson returns the exact 95 % confidence interval of the share hits/of (Biometrika 26, 1934). If the true
// share equalled low, the probability of at least this many hits would be 2.5 %. If it equalled high, the probability
// of at most this many hits would be 2.5 %.
func clopperPearson(hits, of int) (low, high float64) {
	solve := func(tooLow func(share float64) bool) float64 {
		from, to := 0.0, 1.0
		for range 60 {
			if middle := (from + to) / 2; tooLow(middle) {
				from = middle
			} else {
				to = middle
			}
		}
		return from
	}
	atMost := func(n int, share float64) float64 { return stats.BinomialDist{N: of, P: share}.CDF(float64(n)) }
	low, high = 0, 1
	if hits > 0 {
		low = solve(func(share float64) bool { return 1-atMost(hits-1, share) < 0.025 })
	}
	if hits < of {
		high = solve(func(share float64) bool { return atMost(hits, share) > 0.025 })
	}
	return low, high
}

func TestClopperPearson(t *testing.T) {
	for _, test := range []struct {
		hits, of  int
		low, high float64
	}{
		{0, 20, 0, 0.1684}, {20, 20, 0.8316, 1}, {1, 20, 0.0013, 0.2487}, {10, 100, 0.0490, 0.1762},
	} {
		low, high := clopperPearson(test.hits, test.of)
		if math.Abs(low-test.low) > 1e-4 || math.Abs(high-test.high) > 1e-4 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", test.hits, test.of, low, high, test.low, test.high)
		}
	}
}

// short lists the flags of a session. Each session starts its own Redis.
var short = strings.Fields("-q -s spin -c 20 --hold 1ms -d 1s -w 100ms --no-baselines --redis process")

const (
	comparisons = 100
	aSide       = 4 // sessions per side, the smallest number that allows a verdict
)

// TestSessions measures how often compare raises a false alarm. It compares sessions of one build; no two comparisons
// share a session. It takes half an hour. It keeps its sessions and a page with its results in the directory that
// LOCKBENCH_GATE_SESSIONS names, and reuses the sessions that it finds there.
//
// It compares each group of eight sessions in two ways. First it assigns them alternately to base and head, as if the
// two had been recorded alternately. Then it compares the first four with the last four, as if the build had changed in
// between.
func TestSessions(t *testing.T) {
	dir := os.Getenv("LOCKBENCH_GATE_SESSIONS")
	if dir == "" {
		t.Skip("takes half an hour: make sessions")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	g := newWorkshop(t)
	turns, halves := map[results.Verdict]int{}, map[results.Verdict]int{}
	for i := range comparisons {
		var files []string
		for session := range 2 * aSide {
			files = append(files, g.session(filepath.Join(dir, fmt.Sprintf("s%03d.json", 2*aSide*i+session+1))))
		}
		var base, head []string
		for at, file := range files {
			if at%4 == 0 || at%4 == 3 {
				base = append(base, file)
			} else {
				head = append(head, file)
			}
		}
		turns[g.verdict(base, head)]++
		halves[g.verdict(files[:aSide], files[aSide:])]++
	}
	p := newProtocol(g.first)
	p.line("A/A, in turns", turns[compare.Worse], comparisons, rarely, "at most 5 % alarms")
	never := func(share float64) bool { return share == 0 }
	p.line("A/A, one side before the other", halves[compare.Worse], comparisons, never, "no alarm")
	fmt.Fprintf(p, "\n- %d sessions a side of `%s`\n", aSide, strings.Join(short, " "))
	fmt.Fprintf(p, "- undecided: %d comparisons in turns, since a session could not be trusted, and %d of the others, "+
		"also since they differ\n", turns[compare.Undecided], halves[compare.Undecided])
	if err := os.WriteFile(filepath.Join(dir, "protocol.md"), p.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &p.Buffer)
	for _, failed := range p.failed {
		t.Error(failed)
	}
}

// session records a session unless the file exists.
func (g *workshop) session(file string) string {
	g.t.Helper()
	if _, err := os.Stat(file); err != nil {
		args := slices.Concat([]string{"run"}, short, []string{"-o", "json=" + file})
		cmd := exec.CommandContext(g.t.Context(), g.lockbench, args...)
		said, err := cmd.CombinedOutput()
		// A session whose run is invalid does not fail the test: compare leaves out the run, and the verdict is undecided.
		if err != nil && cmd.ProcessState.ExitCode() != command.ExitInvalid {
			g.t.Fatalf("record %s: %v\n%s", file, err, said)
		}
	}
	if g.first == nil {
		g.first = g.report(file)
	}
	return file
}

// verdict returns the verdict of lockbench compare on the session files in base and head. The test fails unless the
// exit code is 110 for the verdict worse, and 0 for any other verdict.
func (g *workshop) verdict(base, head []string) results.Verdict {
	g.t.Helper()
	g.made++
	var dirs []string
	for i, files := range [][]string{base, head} {
		dir := filepath.Join(g.dir, fmt.Sprintf("compared-%d-%d", g.made, i))
		if err := os.Mkdir(dir, 0o777); err != nil {
			g.t.Fatal(err)
		}
		for _, file := range files {
			to, err := filepath.Abs(file)
			if err == nil {
				err = os.Symlink(to, filepath.Join(dir, filepath.Base(file)))
			}
			if err != nil {
				g.t.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
	}
	cmd := exec.CommandContext(g.t.Context(), g.lockbench, "compare", dirs[0], dirs[1], "-o", "json")
	document, err := cmd.Output()
	var c compare.Comparison
	if failed := json.Unmarshal(document, &c); failed != nil {
		g.t.Fatalf("compare %v: %v, %v", dirs, err, failed)
	}
	want := map[results.Verdict]int{compare.Worse: command.ExitRegression}[c.Verdict]
	if code := cmd.ProcessState.ExitCode(); code != want {
		g.t.Fatalf("compare %v is %s and ended with %d, not %d", dirs, c.Verdict, code, want)
	}
	if c.Verdict == compare.Worse {
		g.t.Logf("comparison %d: %s", g.made, c.Headline())
	}
	return c.Verdict
}
