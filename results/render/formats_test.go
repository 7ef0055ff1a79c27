package render

import (
	"bytes"
	"encoding/csv"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
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
	awkward := sample.Recorded() // what a format may trip over
	awkward.Strategies[0].Name = `spin:backoff=fixed,base=5ms,note="a|b"`
	for i := range awkward.Runs {
		if awkward.Runs[i].Strategy == "spin" {
			awkward.Runs[i].Strategy = awkward.Strategies[0].Name
		}
	}
	awkward.Workload.Keys, awkward.Workload.Rate = 16, 2000
	awkward.Runs[1].Invalid = []string{"line one\nline, two"}
	awkward.Runs[3].Server = results.Server{}
	for name, report := range map[string]*results.Report{"recorded": sample.Recorded(), "awkward": awkward, "censored": sample.Cases()["censored"], "empty": sample.Cases()["empty"], "broken": sample.Cases()["broken"]} {
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

func TestFormatsOfZerosAreSound(t *testing.T) {
	zeros := &results.Report{Rounds: 1, Strategies: []results.Strategy{{Name: "a"}}, Runs: []results.Run{{Strategy: "a"}}}
	zeros.Runs[0].Server.Window = &results.ServerDelta{Calls: new(int64(0)), CPU: new(0.0)}
	for name, write := range map[string]func(io.Writer, *results.Report) error{
		"markdown": WriteMarkdown, "csv": WriteCSV, "benchfmt": WriteBenchfmt,
	} {
		got := string(written(t, write, zeros))
		for _, bad := range []string{"NaN", "Inf", "%!"} {
			if strings.Contains(got, bad) {
				t.Errorf("%s has %s:\n%s", name, bad, got)
			}
		}
	}
}

func TestCSVReadsBack(t *testing.T) {
	r := sample.Recorded()
	document := written(t, WriteCSV, r)
	rows, err := csv.NewReader(bytes.NewReader(document)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+len(r.Runs) {
		t.Fatalf("%d rows for %d runs", len(rows), len(r.Runs))
	}
	if bytes.Count(document, []byte("\r\n")) != len(rows) {
		t.Error("lines do not end in CR LF")
	}
	for column, title := range rows[0] {
		if title == "wait_p99_ns" && rows[1][column] == "" {
			t.Error("no wait_p99_ns")
		}
	}
}

// readBench reads benchmark lines with Go's own reader and fails on what it does
// not understand.
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

func TestBenchstatUnderstandsTheLines(t *testing.T) {
	r := sample.Recorded()
	all := readBench(t, written(t, WriteBenchfmt, r))
	if len(all) != len(r.Runs) {
		t.Fatalf("%d results of %d runs", len(all), len(r.Runs))
	}
	for i, result := range all {
		base, parts := result.Name.Parts()
		if string(base) != "Lock" || string(parts[0]) != "/strategy="+r.Runs[i].Strategy || string(parts[1]) != "/clients=500" {
			t.Errorf("name %q is in parts %q %q", result.Name, base, parts)
		}
		if got, ok := result.Value("acq/s"); !ok || got < r.Runs[i].Speed.PerSecond*0.999 || got > r.Runs[i].Speed.PerSecond*1.001 {
			t.Errorf("%s: %v acq/s, want %v", result.Name, got, r.Runs[i].Speed.PerSecond)
		}
		if _, ok := result.Value("sec/op"); !ok {
			t.Errorf("%s has no sec/op: %v", result.Name, result.Values)
		}
	}
}

func TestBenchNamesDoNotEndInANumberOfProcessors(t *testing.T) {
	r := sample.Recorded()
	if err := r.Workload.Hold.UnmarshalText([]byte("file:holds 2026/run-12")); err != nil {
		t.Fatal(err)
	}
	for _, result := range readBench(t, written(t, WriteBenchfmt, r)) {
		if _, parts := result.Name.Parts(); string(parts[len(parts)-1]) != "/hold=file:holds_2026|run_12" {
			t.Errorf("%s ends in %q", result.Name, parts[len(parts)-1])
		}
	}
}

// A lock that nobody got again after a fault has no recovery time in the CSV, but a lower bound.
func TestANeverIsNoTimeInTheCSV(t *testing.T) {
	t.Parallel()
	report := sample.Cases()["faults"]
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
		t.Errorf("nobody got the lock again, and the bound is %q", got)
	}
}
