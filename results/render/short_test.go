package render

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

func short(t *testing.T, r *results.Report, color bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTable(&b, r, color); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// shortCases are those of the full tables, and bursts.
func shortCases() map[string]*results.Report {
	cases := sample.Cases()
	bursts := sample.Report()
	bursts.Workload.Burst = 1e8
	for i := range bursts.Runs {
		bursts.Runs[i].Herd = &results.Herd{Bursts: 40, Attempts: new(499.0), WakeUps: new(12.0), Commands: new(1800.0), DrainCommands: new(17.0), PeakCPU: new(91.0)}
	}
	cases["bursts"] = bursts
	return cases
}

func TestShortTableGolden(t *testing.T) {
	for name, report := range shortCases() {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, filepath.Join("testdata", "short-"+name+".golden"), short(t, report, false))
		})
	}
}

func TestShortTableFits80Columns(t *testing.T) {
	reports := shortCases()
	reports["extreme"] = extreme()
	several := extreme()
	for i := range several.Runs {
		several.Runs[i].Invalid = nil
	}
	reports["extreme and valid"] = several
	for name, report := range reports {
		for _, color := range []bool{false, true} {
			for line := range strings.Lines(short(t, report, color)) {
				line = escapes.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
				if width := twwidth.Width(line); width > 80 {
					t.Errorf("%s: %d columns: %s", name, width, line)
				}
			}
		}
	}
}

// A name stays in one piece for as long as a line of the terminal takes it, and stands with
// its figures where it fits their line.
func TestShortTableBreaksNoName(t *testing.T) {
	for name, beside := range map[string]bool{
		"spin": true, "twelve-chars": true, "spin:backoff=decorrelated,base=1.5ms,cap=100.25ms,multiplier=1.75": false, strings.Repeat("x", 80): false,
	} {
		r := sample.Report()
		r.Strategies[0].Name, r.Runs[2].Strategy = name, name
		lines := strings.Split(short(t, r, false), "\n")
		at := slices.IndexFunc(lines, func(line string) bool { return line == name || strings.HasPrefix(line, name+" ") })
		if at < 0 {
			t.Errorf("%q is in pieces:\n%s", name, strings.Join(lines, "\n"))
			continue
		}
		figures := lines[at]
		if !beside {
			figures = lines[at+1]
		}
		if !strings.Contains(figures, " 410 ") || !strings.HasSuffix(figures, " held") {
			t.Errorf("%q has the figures %q", name, figures)
		}
	}
	long := strings.Repeat("y", 81)
	r := sample.Report()
	r.Strategies[0].Name, r.Runs[2].Strategy = long, long
	table, _, _ := strings.Cut(short(t, r, false), "read ")
	if flat := strings.NewReplacer("\n", "", " ", "").Replace(table); !strings.Contains(flat, long) {
		t.Errorf("a name of 81 columns is not there:\n%s", table)
	}
}

func TestShortTableColourChangesNoCharacter(t *testing.T) {
	for name, report := range shortCases() {
		plain, coloured := short(t, report, false), short(t, report, true)
		if !strings.Contains(coloured, "\x1b[") {
			t.Errorf("%s: no colour", name)
		}
		if diff := cmp.Diff(plain, trimLines(escapes.ReplaceAllString(coloured, ""))); diff != "" {
			t.Errorf("%s (-plain +coloured):\n%s", name, diff)
		}
	}
}

// A run that cannot be trusted is marked in its row, and the reason stands below.
func TestShortTableMarksInvalidRuns(t *testing.T) {
	row := func(table, name string) string {
		for line := range strings.Lines(table) {
			if strings.HasPrefix(line, name) {
				return line
			}
		}
		return ""
	}
	r := sample.Report()
	if got := short(t, r, false); strings.Contains(got, "!") || !strings.Contains(row(got, "pubsub"), "held") {
		t.Errorf("a valid run:\n%s", got)
	}
	r.Runs[1].Invalid = []string{"planted"}
	got := short(t, r, false)
	if marked := row(got, "pubsub !"); !strings.Contains(marked, "INVALID") || strings.Contains(marked, "held") {
		t.Errorf("an invalid run has the row %q", marked)
	}
	if !strings.Contains(got, "! INVALID  pubsub: its run cannot be trusted: planted") {
		t.Errorf("no reason:\n%s", got)
	}
	if _, said, _ := strings.Cut(got, "claims"); strings.Contains(said, "throughput at 500 clients: pubsub") {
		t.Errorf("it is said to be the best:\n%s", got)
	}
}

// One run knows no spread, so none of its figures has a third digit; and nothing else but
// the short table and the words below has what stands there.
func TestShortTableOfOneRunHasTwoDigits(t *testing.T) {
	table, _, _ := strings.Cut(short(t, sample.Report(), false), "read ")
	_, table, _ = strings.Cut(table, "strategy")
	for _, word := range strings.FieldsFunc(table, func(r rune) bool { return !strings.ContainsRune("0123456789.", r) }) {
		digits := strings.TrimRight(strings.TrimLeft(strings.ReplaceAll(word, ".", ""), "0"), "0")
		if len(digits) > 2 {
			t.Errorf("%s has more than two digits in\n%s", word, table)
		}
	}
}

func TestShortTableOfNothingHasNoNaN(t *testing.T) {
	r := &results.Report{Rounds: 1, Strategies: []results.Strategy{{Name: "a"}}, Runs: []results.Run{{Strategy: "a"}}}
	r.Runs[0].Server.Window = &results.ServerDelta{Calls: new(int64(0)), CPU: new(0.0)}
	got := short(t, r, false)
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(got, bad) {
			t.Errorf("the table has %s:\n%s", bad, got)
		}
	}
}
