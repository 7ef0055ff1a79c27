package render

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

func written(t *testing.T, write func(io.Writer, *results.Report) error, r *results.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFormatsGolden(t *testing.T) {
	awkward := sample(t, "recorded") // texts that a format must escape
	awkward.Strategies[0].Name = `spin:backoff=fixed,base=5ms,note="a|b"`
	for i := range awkward.Runs {
		if awkward.Runs[i].Strategy == "spin" {
			awkward.Runs[i].Strategy = awkward.Strategies[0].Name
		}
	}
	awkward.Workload.Keys, awkward.Workload.Rate = 16, 2000
	awkward.Runs[1].Invalid = results.PlainTexts("line one\nline, two")
	awkward.Runs[3].Server = results.Server{}
	for name, report := range map[string]*results.Report{
		"recorded": sample(t, "recorded"), "awkward": awkward,
		"censored": sample(t, "censored"), "empty": sample(t, "empty"), "broken": sample(t, "broken"),
	} {
		for file, write := range map[string]func(io.Writer, *results.Report) error{
			"markdown-" + name + ".md":  WriteMarkdown,
			"csv-" + name + ".csv":      WriteCSV,
			"benchfmt-" + name + ".txt": WriteBenchfmt,
		} {
			t.Run(file, func(t *testing.T) {
				golden.Compare(t, filepath.Join("testdata", file), string(written(t, write, report)))
			})
		}
	}
}

func TestFormatsOfZeros(t *testing.T) {
	zeros := &results.Report{
		Rounds: 1, Baselines: &results.Baselines{}, Strategies: []results.Strategy{{Name: "a"}},
		Runs: []results.Run{{Strategy: "a"}},
	}
	zeros.Runs[0].Server.Window = &results.ServerDelta{Calls: new(int64(0)), BytesIn: new(int64(0)), CPU: new(0.0)}
	for name, got := range map[string]string{
		"tables": draw(t, zeros, false), "short": short(t, zeros, false),
		"markdown": string(written(t, WriteMarkdown, zeros)), "csv": string(written(t, WriteCSV, zeros)),
		"benchfmt": string(written(t, WriteBenchfmt, zeros)),
		"hgrm": string(written(t, func(w io.Writer, r *results.Report) error {
			return WriteHgrm(w, r, "a")
		}, zeros)),
	} {
		for _, bad := range []string{"NaN", "Inf", "%!"} {
			if strings.Contains(got, bad) {
				t.Errorf("%s has %s:\n%s", name, bad, got)
			}
		}
	}
}

// readBench parses benchmark lines with Go's own reader. The test fails if a line has a syntax error, or if the reader
// does not know whether lower or higher values of a unit are better.
func readBench(t *testing.T, document []byte) []*benchfmt.Result {
	t.Helper()
	reader := benchfmt.NewReader(bytes.NewReader(document), "bench.txt")
	var all []*benchfmt.Result
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			all = append(all, record.Clone())
		case *benchfmt.SyntaxError:
			t.Error(record)
		}
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	for _, u := range results.BenchMetrics() {
		want := map[results.Better]int{results.Lower: -1, results.Higher: 1}[u.Better]
		if got := reader.Units().GetBetter(u.Bench.Unit); got != want {
			t.Errorf("%s: better %d, want %d", u.Bench.Unit, got, want)
		}
	}
	return all
}

// No client obtained the lock after a fault. The CSV must mark the recovery time as a lower bound.
func TestCSVOfMissingRecovery(t *testing.T) {
	t.Parallel()
	report := sample(t, "faults")
	report.Runs[0].Faults[0].Injections = []results.Injection{{AtNS: report.Runs[0].WindowNS / 2}}
	rows, err := csv.NewReader(bytes.NewReader(written(t, WriteCSV, report))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, title := range rows[0] {
		at[title] = i
	}
	if got := rows[1][at["fault_recovery_max_at_least"]]; got != "true" || at["fault_stall_max_at_least"] == 0 {
		t.Errorf("no client obtained the lock after the fault, and the bound is %q", got)
	}
}

// Several durations of a run are only lower bounds. In the CSV, the title of the column after each must end in
// _at_least, and its value must be true.
func TestCSVMarksLowerBounds(t *testing.T) {
	t.Parallel()
	report := sample(t, "normal")
	bound, w := &results.Bound{NS: 3e8, AtLeast: true}, &report.Runs[0].Waiting
	for _, d := range []*results.Distribution{&w.PerAcquisition, &w.PerClient, &w.Service} {
		*d = results.Distribution{P50: bound, P90: bound, P95: bound, P99: bound, P999: bound, Max: bound}
	}
	report.Runs[0].Fairness.LongestWait = bound
	rows, err := csv.NewReader(bytes.NewReader(written(t, WriteCSV, report))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, cell := range rows[1] {
		if cell == "300000000" && (rows[1][i+1] != "true" || !strings.HasSuffix(rows[0][i+1], "_at_least")) {
			t.Errorf("%s is a lower bound, and next to it %s is %q", rows[0][i], rows[0][i+1], rows[1][i+1])
		}
	}
}

func TestHgrm(t *testing.T) {
	rows := -1
	for _, name := range HgrmNames(sample(t, "recorded")) {
		document := written(t, func(w io.Writer, r *results.Report) error { return WriteHgrm(w, r, name) },
			sample(t, "recorded"))
		golden.Compare(t, "testdata/hgrm-"+name+".hgrm", string(document))
		n := 0
		for line := range strings.Lines(string(document)) {
			var value, share float64
			if got, _ := fmt.Sscan(line, &value, &share); got == 2 {
				n++
			}
		}
		if rows >= 0 && n != rows {
			t.Errorf("%s has %d rows, others %d: the plotter pairs them", name, n, rows)
		}
		rows = n
	}
	if rows < 100 {
		t.Errorf("%d rows", rows)
	}
	if err := WriteHgrm(io.Discard, sample(t, "recorded"), "nobody"); err == nil {
		t.Error("a strategy that was not measured is written")
	}
	// This report has counts of durations but no histograms, so WriteHgrm must fail.
	if err := WriteHgrm(io.Discard, sample(t, "normal"), "spin"); err == nil ||
		!strings.Contains(err.Error(), "no histogram") {
		t.Errorf("error %v", err)
	}
}

// The runs of a report used different servers. Each row of the CSV must name the server of its run. The header of the
// benchmark lines must name none, because benchstat would apply it to all runs.
func TestRowsNameTheirServer(t *testing.T) {
	r := &results.Report{
		Redis: results.Redis{Name: "valkey", Version: "9.1.2"}, Rounds: 1, Workload: workloads.Default(),
		Stores:     []results.Store{{Name: "etcd", Server: results.Redis{Name: "etcd", Version: "3.4.23"}}},
		Strategies: []results.Strategy{{Name: "spin"}, {Name: "etcd:watch=next", Store: "etcd"}},
		Runs:       []results.Run{{Strategy: "spin"}, {Strategy: "etcd:watch=next"}},
	}
	for i, want := range []string{"valkey 9.1.2", "etcd 3.4.23"} {
		if got := r.ServerOf(r.Runs[i]).Release(); got != want {
			t.Errorf("%s %s was on %q, want %q", r.Runs[i].Strategy, r.Runs[i].Point, got, want)
		}
	}
	table := string(written(t, WriteCSV, r))
	for _, want := range []string{",valkey 9.1.2,", ",etcd 3.4.23,"} {
		if strings.Count(table, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, table)
		}
	}
	if strings.Contains(string(written(t, WriteBenchfmt, r)), "redis: ") {
		t.Error("every run is said to be on one Redis")
	}
}
