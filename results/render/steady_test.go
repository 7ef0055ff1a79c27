package render

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

func TestOnlyASingleRunHasItsOwnInterval(t *testing.T) {
	r := sample.Report()
	for i := range r.Runs {
		r.Runs[i].Timeline = nil
		for at, n := range []int64{90, 110, 90, 110, 100} {
			r.Runs[i].Timeline = append(r.Runs[i].Timeline, results.Slice{At: float64(at), Seconds: 1, Acquisitions: n})
		}
	}
	if table := draw(t, r, false); strings.Count(table, "12.4 %") != 3 || !strings.Contains(table, "(batch") {
		t.Errorf("one run:\n%s", table)
	}
	r.Rounds = 2
	if table := draw(t, r, false); strings.Contains(table, "12.4 %") {
		t.Errorf("two runs:\n%s", table)
	}
}
