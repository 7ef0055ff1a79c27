package claims

import (
	"bytes"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
)

// tested has every verdict and outcome, and what makes a document awkward.
func tested() *Document {
	values := func(values ...float64) []*results.Figure {
		var all []*results.Figure
		for _, v := range values {
			all = append(all, &results.Figure{Value: v})
		}
		return all
	}
	return &Document{
		Head: document.Head{
			Schema: schema, Tool: results.Tool{Name: "lockbench", Version: "v1"}, Redis: results.Redis{Version: "7.0.15", Source: "process"},
			Environment: results.Environment{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26.0"},
			Started:     time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Finished: time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC),
		},
		Claims: []Result{
			{
				Name: "1", Says: "A crashed holder blocks the lock for ever", Verdict: Confirmed,
				Runs: []RunResult{{Name: "crash", Command: "lockbench --strategy setnx --fault holder-crash --runs 3 --no-baselines"}},
				Figures: []FigureResult{{
					What: "crash → next lease", Figure: "crash.recovery", Unit: results.Nanoseconds, Is: ">= 2s", Opposite: "<= 1s", Outcome: Held,
					Values: []*results.Figure{{Value: 3e9, AtLeast: true}, {Value: 4e9, AtLeast: true}, {Value: 2.5e9}},
				}},
				Tests: []string{"strategies/setnx TestCrash"},
			},
			{
				Name: "8", Says: "Pub/Sub tells | wakes *one*", Verdict: Qualified, Qualified: "One a process, and this is a sentence that is long enough for a second line of a table that is as wide as a terminal.",
				Runs: []RunResult{{Name: "a", Command: "lockbench --strategy pubsub"}, {Name: "b", Command: "lockbench --strategy spin"}},
				Figures: []FigureResult{
					{What: "wake-ups, pubsub ÷ spin", Figure: "a.x / b.x", Values: values(1.5, 1.25, 2), Is: "<= 3", Outcome: Partly},
					{What: "overlaps", Figure: "a.overlaps", Values: values(1, 0, 3), Is: ">= 1", Total: true, Outcome: Held},
				},
			},
			{
				Name: "mine", Says: "Nothing is known", Verdict: Inconclusive, Why: []string{"a: pubsub is INVALID in round 2: generator saturated"},
				Runs:    []RunResult{{Name: "a", Command: "lockbench", Invalid: true}},
				Figures: []FigureResult{{What: "speed", Figure: "a.acq_per_s", Unit: results.PerSecond, Values: []*results.Figure{nil, nil}, Is: "< 3", Outcome: Unclear}},
			},
			{
				Name: "9", Says: "It is false", Verdict: Refuted, Runs: []RunResult{{Name: "a", Command: "lockbench"}},
				Figures: []FigureResult{{What: "share", Figure: "a.utilisation - b.utilisation", Unit: results.Percent, Values: values(-5, -5), Is: "> 3", Opposite: "<= 0", Outcome: Contradicted}},
			},
			{
				Name: "peers", Says: "Mine is the fastest", About: "The others stand at their defaults.", Verdict: Qualified,
				Runs: []RunResult{{
					Name: "all", Command: "lockbench --strategy mine,a,b  # 20 processes in one --session, merged",
					Shown: &Shown{Runs: 24, LeftOut: 2, MachineBound: 1, Strategies: []ShownStrategy{
						{Name: "mine", Figures: []document.Figure{{Metric: "acq_per_s", Unit: results.PerSecond, Value: &results.Figure{Value: 812}}, {Metric: "gap", Unit: results.Nanoseconds}}},
						{Name: "a", Figures: []document.Figure{{Metric: "acq_per_s", Unit: results.PerSecond, Value: &results.Figure{Value: 640}}, {Metric: "gap", Unit: results.Nanoseconds, Value: &results.Figure{Value: 2e5, AtLeast: true}}}},
					}},
				}},
				Figures: []FigureResult{
					judged("speed ÷ best", byInterval, ">= 1.2", Missed, values(1.1, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9), "a", "a", "b", "b", "b", "b", "a", "b"),
					judged("speed ÷ best, the middle", byMedian, ">= 1.2", Held, append(values(1.1, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8), nil), "a", "a", "a", "a", "a", "a", "a", ""),
					judged("wait", byInterval, "<= 3", Missed, append(values(1, 1, 1, 1, 1, 1), &results.Figure{Value: 2, AtLeast: true})),
					judged("turns", byInterval, "", Reported, values(3, 4)),
					judged("nothing", byInterval, "> 1", Unclear, []*results.Figure{nil, nil}),
				},
			},
		},
		Libraries:   []string{"example.org/a v1.2.3", "example.org/b v0.1.0"},
		Interrupted: true,
	}
}

// judged is a figure of an interval or median; best is who was that, round by round.
func judged(what, by, is string, outcome Outcome, values []*results.Figure, best ...string) FigureResult {
	return FigureResult{What: what, Figure: "a.x", Is: is, Judged: by, Outcome: outcome, Values: values, Interval: newInterval(values), Best: best}
}

func TestClaimsAreWritten(t *testing.T) {
	t.Parallel()
	c := tested()
	for file, write := range map[string]func(*bytes.Buffer) error{
		"claims.txt":  func(b *bytes.Buffer) error { return WriteTable(b, c, false) },
		"claims.ansi": func(b *bytes.Buffer) error { return WriteTable(b, c, true) },
		"claims.json": func(b *bytes.Buffer) error { return WriteJSON(b, c) },
		"claims.md":   func(b *bytes.Buffer) error { return WriteMarkdown(b, c) },
	} {
		var written bytes.Buffer
		if err := write(&written); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+file, written.String())
	}
	if names := c.Invalid(); len(names) != 1 || names[0] != "mine" {
		t.Errorf("invalid are %q", names)
	}
}

// The median of rounds is only as exact as what lies below it.
func TestWhatIsSaidOfTheRoundsOfAFigure(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]FigureResult{
		"≥ 2 (≥ 1 … 3)":                           {Values: []*results.Figure{{Value: 3}, {Value: 1, AtLeast: true}, {Value: 2}}},
		"2 (1 … ≥ 3), not known in 1 of 4 rounds": {Values: []*results.Figure{{Value: 3, AtLeast: true}, nil, {Value: 1}, {Value: 2}}},
		"5 in all, not known in 1 of 3 rounds":    {Total: true, Values: []*results.Figure{{Value: 3}, nil, {Value: 2}}},
		"7, not known in 2 of 3 rounds":           {Values: []*results.Figure{nil, {Value: 7}, nil}},
	} {
		if got := f.cameTo(); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
}
