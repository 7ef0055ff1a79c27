package render

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Some waits of each lock timed out. The share of these waits must come before findings about speed, and no lock may be
// listed as having served every client. The legend must explain the lower bounds.
func TestTimedOutWaitsAreReported(t *testing.T) {
	t.Parallel()
	r := sample(t, "normal")
	r.Workload.Timeout = new(workloads.Duration(300 * time.Millisecond))
	for i := range r.Runs {
		w, bound := &r.Runs[i].Waiting, &results.Bound{NS: 3e8, AtLeast: true}
		w.TimedOut = w.PerAcquisition.Count*int64(i) + 1
		w.PerAcquisition.P99, w.PerClient.P99, w.Service.P99 = bound, bound, bound
	}
	for name, write := range map[string]func(io.Writer, *results.Report) error{
		"table":    func(w io.Writer, r *results.Report) error { return WriteTable(w, r, 80, false) },
		"tables":   func(w io.Writer, r *results.Report) error { return WriteTables(w, r, 200, false) },
		"Markdown": WriteMarkdown,
	} {
		flat := strings.Join(strings.Fields(string(written(t, write, r))), " ")
		const gaveUp = "waits ended without a lease at --timeout 300ms: "
		at := strings.Index(flat, gaveUp)
		if at < 0 || !strings.Contains(flat, "≥ lower bound: some waits timed out") ||
			strings.Contains(flat, "served every client") {
			t.Errorf("%s:\n%s", name, flat)
			continue
		}
		if throughput := strings.Index(flat, "highest throughput"); throughput >= 0 && throughput < at {
			t.Errorf("%s: the throughput comes first:\n%s", name, flat)
		}
	}
}
