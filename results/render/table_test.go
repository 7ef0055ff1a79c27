package render

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// sample reads a report from ../testdata. name is the name of the file.
func sample(t *testing.T, name string) *results.Report {
	t.Helper()
	return golden.Report(t, "../testdata/"+name+".json")
}

func samples(t *testing.T) map[string]*results.Report {
	t.Helper()
	all := golden.Reports(t, "../testdata")
	delete(all, "recorded") // the tables of rounds
	return all
}

func draw(t *testing.T, r *results.Report, color bool) string {
	t.Helper()
	return string(written(t, func(w io.Writer, r *results.Report) error {
		return WriteTables(w, r, layout.Width, color)
	}, r))
}

// kinds lists the two kinds of tables, full and short. The name of a kind is the prefix of its golden files.
var kinds = []struct {
	name    string
	write   func(*testing.T, *results.Report, bool) string
	reports func(*testing.T) map[string]*results.Report
	width   int
}{{"tables", draw, samples, layout.Width}, {"short", short, shortCases, 80}}

func TestTableGolden(t *testing.T) {
	for _, kind := range kinds {
		for name, report := range kind.reports(t) {
			t.Run(kind.name+"-"+name, func(t *testing.T) {
				file := filepath.Join("testdata", kind.name+"-"+name+".golden")
				golden.Compare(t, file, kind.write(t, report, false))
			})
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestTableColourChangesNoCharacter(t *testing.T) {
	for _, kind := range kinds {
		for name, report := range kind.reports(t) {
			plain, coloured := kind.write(t, report, false), kind.write(t, report, true)
			if !strings.Contains(coloured, "\x1b[") {
				t.Errorf("%s %s: no colour", kind.name, name)
			}
			if diff := cmp.Diff(plain, trimLines(escapes.ReplaceAllString(coloured, ""))); diff != "" {
				t.Errorf("%s %s (-plain +coloured):\n%s", kind.name, name, diff)
			}
		}
	}
}

func trimLines(s string) string {
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(s, "")
}

// extreme returns a report that fills every table, with very long names and texts.
func extreme(t *testing.T) *results.Report {
	t.Helper()
	r := sample(t, "faults")
	r.Rounds, r.Workload.Work, r.Workload.Coalesce = 2, workloads.WorkCounter, true
	r.Environment.CPUModel = strings.Repeat("Very Long Processor Name ", 6)
	r.Redis.Address = strings.Repeat("a-host-name-without-a-break", 6) + ":6379"
	r.Warnings = results.PlainTexts(strings.Repeat("word ", 60), strings.Repeat("x", 300), strings.Repeat("錠", 90))
	for i, name := range []string{
		"spin:backoff=decorrelated,base=1.5ms,cap=100.25ms,multiplier=1.75", strings.Repeat("錠", 70), "pubsub",
	} {
		r.Strategies[i].Name, r.Strategies[i].Caveat = name, "breaks "+strings.Repeat("often ", 40)
		run := &r.Runs[i]
		run.Strategy, run.Herd = name, &results.Herd{Bursts: 99_999}
		run.Safety.Broken = results.PlainTexts("exclusion: "+strings.Repeat("n", 200), "fencing: x", "FIFO: y")
		run.Errors = []results.ErrorCount{{Error: strings.Repeat("error", 60), Count: 99_999}}
		again := *run
		again.Round = 2
		if again.Speed.PerSecond *= 1234; name == "pubsub" {
			again.Invalid = results.PlainTexts(strings.Repeat("reason ", 30))
		}
		r.Runs = append(r.Runs, again)
	}
	return r
}

func TestTablesFitWidthWithAllNames(t *testing.T) {
	for _, kind := range kinds {
		reports := kind.reports(t)
		long := extreme(t)
		reports["extreme"] = long
		flat := strings.NewReplacer("\n", "", " ", "").Replace(kind.write(t, long, false))
		if name := long.Strategies[0].Name; !strings.Contains(flat, "reason") || !strings.Contains(flat, name) {
			t.Errorf("%s: %q is not there", kind.name, name)
		}
		for name, report := range reports {
			for _, color := range []bool{false, true} {
				for line := range strings.Lines(kind.write(t, report, color)) {
					line = escapes.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
					if width := layout.TextWidth(line); width > kind.width {
						t.Errorf("%s %s: %d columns: %s", kind.name, name, width, line)
					}
				}
			}
		}
	}
}
