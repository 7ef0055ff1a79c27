package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestTablesOmitPercentilesOfFewWaits(t *testing.T) {
	for _, test := range []struct {
		waits int64
		shown bool
	}{{20, false}, {99, false}, {100, true}} {
		all := &results.Bound{NS: 400e6}
		d := results.Distribution{Count: test.waits, P50: all, P99: all, Max: all}
		run := results.Run{Strategy: "fifo", Waiting: results.Waiting{PerAcquisition: d, PerClient: d}}
		run.Speed.Handoff = d
		r := &results.Report{Rounds: 1, Strategies: []results.Strategy{{Name: "fifo"}}, Runs: []results.Run{run}}
		// With enough durations, seven figures are shown: p50, p99 and maximum of the waits, p50 and p99 of the waits per
		// client, and p50 and p99 of the handoffs.
		want, note := 7, false
		if !test.shown {
			want, note = 4, true
		}
		table := draw(t, r, false)
		if got := strings.Count(table, "400 ms"); got != want {
			t.Errorf("of %d waits %d figures are shown, not %d:\n%s", test.waits, got, want, table)
		}
		if strings.Contains(table, "too few") != note || note && !strings.Contains(table, "20 handoffs, 20 waits") &&
			test.waits == 20 {
			t.Errorf("of %d waits it says\n%s", test.waits, table)
		}
	}
}

// The verdict must not be "held" if every run is invalid, even if the audit found nothing. A claim that any run broke
// must be shown.
func TestInvalidRunsNeverShowHeld(t *testing.T) {
	for invalid, want := range []string{"held", "held (2 of 3 trusted)", "held (1 of 3 trusted)", "INVALID"} {
		r := sample(t, "normal")
		r.Rounds, r.Strategies = 3, r.Strategies[:1]
		spin := r.Runs[2]
		r.Runs = nil
		for round := range 3 {
			run := spin
			run.Round = round + 1
			run.Invalid = nil
			if round < invalid {
				run.Invalid = results.PlainTexts(fmt.Sprintf("planted %d", round))
			}
			r.Runs = append(r.Runs, run)
		}
		if got := r.Summaries()[0].Verdict(); got != want {
			t.Errorf("with %d of 3 runs invalid the verdict is %q, want %q", invalid, got, want)
		}
		broke := r.Summaries()[0]
		broke.Runs[0].Safety.Broken = results.Remarks{results.Overlapped.Remark(3)}
		if got := broke.Verdict(); got != "BROKEN: exclusion" {
			t.Errorf("with %d of 3 runs invalid a broken claim is %q", invalid, got)
		}
		for _, text := range []string{draw(t, r, false), string(written(t, WriteMarkdown, r))} {
			if safety := text[strings.Index(text, "SAFETY"):]; strings.Contains(safety, "held") != (invalid < 3) {
				t.Errorf("with %d of 3 runs invalid:\n%s", invalid, safety)
			}
		}
	}
}

// Idle CPU time is subtracted from the measured CPU time. If more than a third is subtracted, the figure must have
// fewer than three digits in tables, ratios and judgements.
func TestSubtractedFiguresHaveFewerDigits(t *testing.T) {
	limit, err := results.ParseThreshold("redis_cpu_per_acq<1s")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		idle                float64 // of a CPU second, in ten thousand acquisitions
		want, ratio, spread string
	}{
		{0, "100 µs", "1.00 (1.00–1.00)", "100–100 µs"},
		{0.3333, "66.7 µs", "1.00 (1.00–1.00)", "66.7–66.7 µs"},
		{0.3334, "~67 µs", "~1.0 (1.0–1.0)", "~67–~67 µs"},
		{0.666, "~33 µs", "~1.0 (1.0–1.0)", "~33–~33 µs"},
		{0.667, "~30 µs", "~1 (1–1)", "~30–~30 µs"},
		{0.98766, "~1 µs", "~1 (1–1)", "~1–~1 µs"},
		{0.999, "~100 ns", "~1 (1–1)", "~100–~100 ns"},
	} {
		r := sample(t, "normal")
		r.Rounds = 2
		for i := range r.Runs {
			d := *r.Runs[i].Server.Window
			d.CPU, d.IdleCPU, d.Acquisitions = new(1.0), new(test.idle), 10_000
			r.Runs[i].Server.Window = &d
		}
		again := slices.Clone(r.Runs)
		for i := range again {
			again[i].Round = 2
		}
		r.Runs = append(r.Runs, again...)
		table := draw(t, r, false)
		_, cost, _ := strings.Cut(table, "COST")
		cost, rest, _ := strings.Cut(cost, "LOAD")
		if strings.Count(cost, test.want) != 3 || !strings.Contains(rest, test.spread) ||
			!strings.Contains(table, test.ratio) || strings.Contains(table, "~") != strings.HasPrefix(test.want, "~") {
			t.Errorf("%v s idle of 1 s: no %+v in\n%s", test.idle, test, table)
		}
		for _, v := range results.Judge(r, []results.Threshold{limit}) {
			if !strings.Contains(v.String(), test.want) {
				t.Errorf("%v s idle of 1 s: %s", test.idle, v)
			}
		}
	}
}

// The legend of the brackets after a ratio must depend on the number of rounds in the ratio, not on the number of
// requested rounds.
func TestRatioLegendMatchesRounds(t *testing.T) {
	const interval = "ratios: median of the rounds (its 95 % interval"
	const span = "median (smallest–largest) of the rounds"
	for _, test := range []struct {
		asked  int
		usable []int // rounds of the second and third strategy
		want   string
		marked []string
	}{
		{6, []int{6, 6}, interval + ")", nil},
		{6, []int{6, 4}, interval + "; with fewer than 6, smallest–largest and their number)", []string{"of 4)"}},
		{6, []int{5, 2}, span, []string{"of 5)", "of 2)"}},
		{6, []int{6, 1}, interval + "; with fewer than 6", []string{"(of 1)"}},
		{3, []int{3, 3}, span, nil},
	} {
		r := &results.Report{Rounds: test.asked}
		for i, usable := range append([]int{test.asked}, test.usable...) {
			name := fmt.Sprint("lock", i)
			r.Strategies = append(r.Strategies, results.Strategy{Name: name})
			for round := range test.asked {
				run := results.Run{Strategy: name, Round: round + 1, WindowNS: 1e9}
				run.Speed.PerSecond = float64(800 + 100*i + round)
				if round >= usable {
					run.Invalid = results.PlainTexts("x")
				}
				r.Runs = append(r.Runs, run)
			}
		}
		for _, text := range []string{draw(t, r, false), short(t, r, false)} {
			flat := strings.Join(strings.Fields(text), " ")
			if !strings.Contains(flat, test.want) || strings.Contains(flat, " of 6)") {
				t.Errorf("%v of %d rounds are usable; want %q:\n%s", test.usable, test.asked, test.want, text)
			}
			for _, mark := range test.marked {
				if !strings.Contains(flat, mark) {
					t.Errorf("%v of %d rounds are usable; no %q:\n%s", test.usable, test.asked, mark, text)
				}
			}
		}
	}
}
