package render

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results/internal/sample"
)

func TestTablesShowNoPercentileOfTooFew(t *testing.T) {
	for _, test := range []struct {
		waits int64
		shown bool
	}{{20, false}, {99, false}, {100, true}} {
		r := sample.Waited(test.waits, 400, 0, 0)
		r.Runs[0].Speed.Handoff = r.Runs[0].Waiting.PerAcquisition
		r.Runs[0].Waiting.PerClient = r.Runs[0].Waiting.PerAcquisition
		// p50, p99, maximum of the waits; p50 and p99 per client; p50 and p99 of handoffs.
		want, note := 7, false
		if !test.shown {
			want, note = 4, true
		}
		table := draw(t, r, false)
		if got := strings.Count(table, "400 ms"); got != want {
			t.Errorf("of %d waits %d figures are shown, not %d:\n%s", test.waits, got, want, table)
		}
		if strings.Contains(table, "too few") != note || note && !strings.Contains(table, "20 handoffs, 20 waits") && test.waits == 20 {
			t.Errorf("of %d waits it says\n%s", test.waits, table)
		}
	}
}
