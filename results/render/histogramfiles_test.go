package render

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

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
