package gate

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/results/compare"
)

// short is a session of compare, with a Redis of its own.
var short = strings.Fields("-q -s spin -c 20 --hold 1ms -d 1s -w 100ms --no-baselines --redis process")

const (
	comparisons = 100
	aSide       = 4 // sessions, the fewest that decide anything
)

// TestSessions is the proof that compare does not cry wolf: comparisons of sessions of one
// build, no two of which have a session in common. It takes half an hour and keeps the
// sessions in the directory that LOCKBENCH_GATE_SESSIONS names, where those that are
// there already are not recorded again, with the protocol beside them.
//
// The same eight sessions are compared in two ways: as taken in turns, and the first four
// with the last four, as they come when a change lies in between.
func TestSessions(t *testing.T) {
	dir := os.Getenv("LOCKBENCH_GATE_SESSIONS")
	if dir == "" {
		t.Skip("takes half an hour: make sessions")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	g := newWorkshop(t)
	turns, halves := map[compare.Verdict]int{}, map[compare.Verdict]int{}
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

// session records a session unless it is there.
func (g *workshop) session(file string) string {
	g.t.Helper()
	if _, err := os.Stat(file); err != nil {
		args := slices.Concat([]string{"run"}, short, []string{"-o", "json=" + file})
		cmd := exec.CommandContext(g.t.Context(), g.lockbench, args...)
		said, err := cmd.CombinedOutput()
		// A disturbed run is left out by compare, which then decides nothing.
		if err != nil && cmd.ProcessState.ExitCode() != command.ExitInvalid {
			g.t.Fatalf("record %s: %v\n%s", file, err, said)
		}
	}
	if g.first == nil {
		g.first = g.report(file)
	}
	return file
}

// verdict is that of lockbench compare on these sessions, which ends with 110 if it is
// worse and else with 0.
func (g *workshop) verdict(base, head []string) compare.Verdict {
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
	want := map[compare.Verdict]int{compare.Worse: command.ExitRegression}[c.Verdict]
	if code := cmd.ProcessState.ExitCode(); code != want {
		g.t.Fatalf("compare %v is %s and ended with %d, not %d", dirs, c.Verdict, code, want)
	}
	if c.Verdict == compare.Worse {
		g.t.Logf("comparison %d: %s", g.made, c.Headline())
	}
	return c.Verdict
}
