package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

const (
	rounds = 20 // of an A/A comparison and a slower head each
	dear   = 10 // heads with a command more
	pairs  = 14
)

// What the builds are compared on: everybody at one lock, where the clock decides,
// and a lock for everybody, where the number of commands hardly varies.
var (
	contended = []string{"-s", Strategy, "-c", "8", "--hold", "1ms", "-d", "400ms", "-w", "100ms"}
	apart     = []string{"-s", Strategy, "-c", "8", "--keys", "64", "--hold", "1ms", "-d", "400ms", "-w", "100ms"}
)

// TestGate is the proof that the gate fires and does not cry wolf, by any metric
// (--strict). It counts comparisons of which no two have a run in common. It takes a
// quarter of an hour and writes its protocol to the file that LOCKBENCH_GATE names.
func TestGate(t *testing.T) {
	file := os.Getenv("LOCKBENCH_GATE")
	if file == "" {
		t.Skip("takes a quarter of an hour: make gate")
	}
	if err := os.Unsetenv("LOCKBENCH_GATE"); err != nil { // lockbench takes it for LOCKBENCH_RATE misspelt
		t.Fatal(err)
	}
	g := newWorkshop(t)
	base := g.build("base", Fault{})
	same := g.build("same", Fault{})
	dearer := g.build("dearer", Fault{Commands: 1})

	var equal, slower, costly trials
	for round := 1; round <= rounds; round++ {
		aa := g.compare(base, same, contended)
		equal.add(aa)
		// As much slower as the comparison just made says it would have found.
		effect := max(0.1, -*aa.primary().Detectable)
		rate := *aa.primary().Base.Median
		delay := time.Duration(effect / (1 - effect) / rate * float64(time.Second))
		slow := g.compare(base, g.build(fmt.Sprintf("slower-%d", round), Fault{Delay: delay}), contended)
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

// workshop makes builds and compares them.
type workshop struct {
	t         *testing.T
	dir       string
	lockbench string
	made      int
	first     *results.Report // whose machine and workload the protocol names
}

func newWorkshop(t *testing.T) *workshop {
	g := &workshop{t: t, dir: t.TempDir()}
	g.lockbench = filepath.Join(g.dir, "lockbench")
	g.do("go", "build", "-o", g.lockbench, "../../cmd/lockbench")
	return g
}

func (g *workshop) do(name string, args ...string) {
	g.t.Helper()
	if said, err := exec.CommandContext(g.t.Context(), name, args...).CombinedOutput(); err != nil {
		g.t.Fatalf("%s %v: %v\n%s", name, args, err, said)
	}
}

// build makes a lockbench with that fault.
func (g *workshop) build(name string, f Fault) string {
	g.t.Helper()
	file := filepath.Join(g.dir, name)
	flags := fmt.Sprintf("-X main.delay=%s -X main.commands=%d", f.Delay, f.Commands)
	g.do("go", "build", "-o", file, "-ldflags", flags, "./lock")
	return file
}

// trial is one comparison.
type trial struct {
	compare.Comparison
	took     time.Duration
	injected float64
}

// compare is lockbench ab --strict, as anybody calls it.
func (g *workshop) compare(base, head string, flags []string) trial {
	g.t.Helper()
	g.made++
	runs := filepath.Join(g.dir, fmt.Sprintf("runs-%d", g.made))
	out := runs + ".json"
	args := []string{
		"ab", base, head, "-q", "--strict", "--pairs", fmt.Sprint(pairs), "--seed", fmt.Sprint(g.made),
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
	want := map[compare.Verdict]int{compare.Worse: command.ExitRegression}[tr.Verdict]
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

// primary is the result on the primary metric.
func (tr trial) primary() compare.Result {
	for _, r := range tr.Strategies[0].Results {
		if r.Metric == tr.Rules.Primary && r.Detectable != nil && *r.Detectable < 0 && !math.IsInf(*r.Detectable, 0) {
			return r
		}
	}
	panic("a comparison without its primary metric")
}

// trials are comparisons of the same kind.
type trials []trial

func (ts *trials) add(t trial) { *ts = append(*ts, t) }

// worse counts the comparisons that called the head worse.
func (ts trials) worse() int {
	n := 0
	for _, t := range ts {
		if t.Verdict == compare.Worse {
			n++
		}
	}
	return n
}

// by counts those that called it worse by this metric.
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

// medianOf is that of a figure of every trial.
func (ts trials) medianOf(figure func(trial) float64) float64 {
	var all []float64
	for _, t := range ts {
		all = append(all, figure(t))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// slowest is how long the longest of them took.
func (ts trials) slowest() time.Duration {
	longest := time.Duration(0)
	for _, t := range ts {
		longest = max(longest, t.took)
	}
	return longest
}
