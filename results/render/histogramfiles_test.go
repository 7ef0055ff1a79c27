package render

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

var payload = regexp.MustCompile(`(?m)HIST\S+$`)

func TestHlog(t *testing.T) {
	r := sample.Recorded()
	r.Strategies[0].Name = "spin:backoff=fixed,base=5ms"
	for i := range r.Runs {
		if r.Runs[i].Strategy == "spin" {
			r.Runs[i].Strategy = r.Strategies[0].Name
		}
	}
	log := written(t, WriteHlog, r)
	// How well it is compressed is the Go release's business.
	golden.Compare(t, "testdata/hlog.hlog", string(payload.ReplaceAll(log, []byte("HISTOGRAM"))))

	reader := hdrhistogram.NewHistogramLogReader(bytes.NewReader(log))
	waits := map[string]int64{}
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		waits[h.Tag()] += h.TotalCount()
	}
	if want := int64(2055 + 2260 + 1849); waits["spin:backoff=fixed;base=5ms.wait"] != want || waits["pubsub.wait-open"] != 3*499 {
		t.Errorf("read back: %v, want %d waits of spin", waits, want)
	}
}

func TestHgrm(t *testing.T) {
	rows := -1
	for _, name := range HgrmNames(sample.Recorded()) {
		document := written(t, func(w io.Writer, r *results.Report) error { return WriteHgrm(w, r, name) }, sample.Recorded())
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
	if err := WriteHgrm(io.Discard, sample.Recorded(), "nobody"); err == nil {
		t.Error("a strategy that was not measured is written")
	}
	// A report whose durations were counted but not kept.
	if err := WriteHgrm(io.Discard, sample.Report(), "spin"); err == nil || !strings.Contains(err.Error(), "no histogram") {
		t.Errorf("error %v", err)
	}
	none := &results.Report{Runs: []results.Run{{Strategy: "a"}}}
	if got := string(written(t, func(w io.Writer, r *results.Report) error { return WriteHgrm(w, r, "a") }, none)); strings.Contains(got, "NaN") {
		t.Error(got)
	}
}

func TestOtavaIsContinued(t *testing.T) {
	first, second := sample.Recorded(), sample.Recorded()
	first.Tool.Commit, first.Tool.Branch = "aaa", "main"
	second.Tool.Commit, second.Tool.Branch = "bbb", "main"
	// The second time without redsync, and with a variant that is new.
	for i := range second.Runs {
		if second.Runs[i].Strategy == "redsync" {
			second.Runs[i].Strategy = "spin:backoff=fixed,base=5ms"
		}
	}
	second.Strategies[2].Name = "spin:backoff=fixed,base=5ms"

	onto := func(existing []byte) func(io.Writer, *results.Report) error {
		return func(w io.Writer, r *results.Report) error { return WriteOtava(w, r, existing) }
	}
	document := written(t, onto(nil), first)
	document = written(t, onto(document), second)
	document = written(t, onto(document), first)
	golden.Compare(t, "testdata/otava.csv", string(document))
	rows, err := csv.NewReader(bytes.NewReader(document)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]int{}
	for i, title := range rows[0] {
		columns[title] = i
	}
	for title, want := range map[string][]string{
		"commit":                                               {"aaa", "bbb", "aaa"},
		"spin/c500/hold=1ms/acq_per_s":                         {"411", "411", "411"},
		"redsync/c500/hold=1ms/acq_per_s":                      {"212", "nan", "212"},
		"redsync/c500/hold=1ms/violations":                     {"0", "nan", "0"},
		"pubsub/c500/hold=1ms/wait_p99":                        {"nan", "nan", "nan"}, // lower bounds
		second.Strategies[2].Name + "/c500/hold=1ms/acq_per_s": {"nan", "212", "nan"},
	} {
		at, ok := columns[title]
		if !ok {
			t.Errorf("no column %s", title)
			continue
		}
		for i, cell := range want {
			if rows[i+1][at] != cell {
				t.Errorf("%s, row %d: %q, want %q", title, i, rows[i+1][at], cell)
			}
		}
	}

	config := written(t, func(w io.Writer, r *results.Report) error { return WriteOtavaConfig(w, r, "runs.csv") }, second)
	golden.Compare(t, "testdata/otava.yaml", string(config))
	var read struct {
		Tests map[string]struct {
			File    string
			Metrics map[string]struct {
				Column    string
				Direction int
			}
		}
	}
	if err := yaml.Unmarshal(config, &read); err != nil {
		t.Fatal(err)
	}
	test := read.Tests["spin/c500/hold=1ms"]
	if m := test.Metrics["acq_per_s"]; test.File != "runs.csv" || m.Direction != 1 || m.Column != "spin/c500/hold=1ms/acq_per_s" {
		t.Errorf("%+v", test)
	}
	for name, test := range read.Tests {
		for _, m := range test.Metrics {
			if _, ok := columns[m.Column]; !ok {
				t.Errorf("%s: column %q is not in the CSV", name, m.Column)
			}
		}
	}
}

func TestOtavaRefusesAnotherFile(t *testing.T) {
	for _, existing := range []string{
		"a,b\n1,2\n",
		"time,commit\n",
		"time,commit,branch,x\n1,2,3\n",
		"time,commit,\"branch\n",
		"{}",
	} {
		if err := CheckOtava([]byte(existing)); err == nil {
			t.Errorf("%q is taken", existing)
		}
		if err := WriteOtava(io.Discard, sample.Recorded(), []byte(existing)); err == nil {
			t.Errorf("%q is continued", existing)
		}
	}
}
