package render

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

// A figure of which a third or more was subtracted is not printed to three digits.
func TestWhatIsLeftOfASubtractionIsRough(t *testing.T) {
	for _, test := range []struct {
		idle float64 // of a CPU second, in ten thousand acquisitions
		want string
	}{
		{0, "100 µs"}, {0.3333, "66.7 µs"}, {0.3334, "~67 µs"}, {0.666, "~33 µs"}, {0.667, "~30 µs"}, {0.98766, "~1 µs"}, {0.999, "~100 ns"},
	} {
		r := sample.Report()
		r.Rounds = 2
		var runs []results.Run
		for i := range r.Runs {
			d := *r.Runs[i].Server.Window
			d.CPU, d.IdleCPU, d.Acquisitions = new(1.0), new(test.idle), 10_000
			r.Runs[i].Server.Window = &d
			again := r.Runs[i]
			again.Round = 2
			runs = append(runs, again)
		}
		r.Runs = append(r.Runs, runs...)
		table := draw(t, r, false)
		if rough := strings.Contains(table, "~1 (1–1)"); rough != strings.HasPrefix(test.want, "~") {
			t.Errorf("%v s idle of 1 s: the ratio is rough: %v\n%s", test.idle, rough, table)
		}
		_, cost, _ := strings.Cut(table, "COST")
		cost, rest, _ := strings.Cut(cost, "LOAD")
		if strings.Count(cost, test.want) != 3 {
			t.Errorf("%v s idle of 1 s: no %s in\n%s", test.idle, test.want, cost)
		}
		number, unit, _ := strings.Cut(test.want, " ")
		if spread := number + "–" + number + " " + unit; !strings.Contains(rest, spread) {
			t.Errorf("%v s idle of 1 s: no %s in\n%s", test.idle, spread, rest)
		}
		limit, err := results.ParseThreshold("redis_cpu_per_acq<1s")
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range results.Judge(r, []results.Threshold{limit}) {
			if !strings.Contains(v.String(), test.want) {
				t.Errorf("%v s idle of 1 s: %s", test.idle, v)
			}
		}
	}
}
