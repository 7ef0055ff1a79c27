package render

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
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
func shortCases(t *testing.T) map[string]*results.Report {
	cases := samples(t)
	bursts := sample(t, "normal")
	bursts.Workload.Burst = 1e8
	for i := range bursts.Runs {
		bursts.Runs[i].Herd = &results.Herd{
			Bursts: 40, Attempts: new(499.0), WakeUps: new(12.0), Commands: new(1800.0),
			DrainCommands: new(17.0), PeakCPU: new(91.0),
		}
	}
	cases["bursts"] = bursts
	return cases
}

// A name stays in one piece for as long as a line of the terminal takes it, and stands with
// its figures where it fits their line.
func TestShortTableBreaksNoName(t *testing.T) {
	for name, beside := range map[string]bool{
		"spin": true, "twelve-chars": true, "spin:backoff=decorrelated,base=1.5ms,cap=100.25ms,multiplier=1.75": false,
		strings.Repeat("x", 80): false,
	} {
		r := sample(t, "normal")
		r.Strategies[0].Name, r.Runs[2].Strategy = name, name
		lines := strings.Split(short(t, r, false), "\n")
		at := slices.IndexFunc(lines, func(line string) bool {
			return line == name ||
				strings.HasPrefix(line, name+" ")
		})
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
	r := sample(t, "normal")
	r.Strategies[0].Name, r.Runs[2].Strategy = long, long
	table, _, _ := strings.Cut(short(t, r, false), "read ")
	if flat := strings.NewReplacer("\n", "", " ", "").Replace(table); !strings.Contains(flat, long) {
		t.Errorf("a name of 81 columns is not there:\n%s", table)
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
	r := sample(t, "normal")
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
	table, _, _ := strings.Cut(short(t, sample(t, "normal"), false), "read ")
	_, table, _ = strings.Cut(table, "strategy")
	for _, word := range strings.FieldsFunc(table,
		func(r rune) bool { return !strings.ContainsRune("0123456789.", r) }) {
		digits := strings.TrimRight(strings.TrimLeft(strings.ReplaceAll(word, ".", ""), "0"), "0")
		if len(digits) > 2 {
			t.Errorf("%s has more than two digits in\n%s", word, table)
		}
	}
}
