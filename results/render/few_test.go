package render

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// waited is a report of one run with so many waits seen to their end and so many cut off,
// all of them of one length each, in ms.
func waited(t *testing.T, ended, endedMS, open, openMS int64) *results.Report {
	t.Helper()
	h, censored := results.NewHistogram(), results.NewHistogram()
	longest := &results.Bound{NS: endedMS * 1e6}
	if err := h.RecordValues(endedMS*1e6, ended); err != nil {
		t.Fatal(err)
	}
	if open > 0 {
		if err := censored.RecordValues(openMS*1e6, open); err != nil {
			t.Fatal(err)
		}
		longest = results.Longest(longest, &results.Bound{NS: openMS * 1e6, AtLeast: true})
	}
	d, err := results.Describe(results.Observations{Ended: h, Censored: censored}, longest)
	if err != nil {
		t.Fatal(err)
	}
	d.MeanNS = new(float64(endedMS) * 1e6)
	run := results.Run{Strategy: "fifo", Round: 1, WindowNS: 1e9}
	run.Waiting.PerAcquisition = d
	return &results.Report{Rounds: 1, Strategies: []results.Strategy{{Name: "fifo"}}, Runs: []results.Run{run}}
}

func TestTablesShowNoPercentileOfTooFew(t *testing.T) {
	for _, test := range []struct {
		waits int64
		shown bool
	}{{20, false}, {99, false}, {100, true}} {
		r := waited(t, test.waits, 400, 0, 0)
		r.Runs[0].Speed.Handoff = r.Runs[0].Waiting.PerAcquisition
		r.Runs[0].Waiting.PerClient = r.Runs[0].Waiting.PerAcquisition
		// p50, p99, maximum of the waits; p50 and p99 per client; p50 and p99 of handoffs.
		want, note := 7, false
		if !test.shown {
			want, note = 4, true
		}
		table := draw(t, r, TableOptions{})
		if got := strings.Count(table, "400 ms"); got != want {
			t.Errorf("of %d waits %d figures are shown, not %d:\n%s", test.waits, got, want, table)
		}
		if strings.Contains(table, "too few") != note || note && !strings.Contains(table, "20 handoffs, 20 waits") && test.waits == 20 {
			t.Errorf("of %d waits it says\n%s", test.waits, table)
		}
	}
}
