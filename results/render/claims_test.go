package render

import (
	"bytes"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
)

// tested has every verdict and outcome, and what makes a document awkward.
func tested() *results.Claims {
	values := func(values ...float64) []*results.Figure {
		var all []*results.Figure
		for _, v := range values {
			all = append(all, &results.Figure{Value: v})
		}
		return all
	}
	return &results.Claims{
		Tool: results.Tool{Name: "lockbench", Version: "v1"}, Redis: results.Redis{Version: "7.0.15", Source: "process"},
		Environment: results.Environment{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26.0"},
		Started:     time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Finished: time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC),
		Claims: []results.Claim{
			{
				Name: "1", Says: "A crashed holder blocks the lock for ever", Verdict: results.Confirmed,
				Runs: []results.ClaimRun{{Name: "crash", Command: "lockbench --strategy setnx --fault holder-crash --runs 3 --no-floors"}},
				Figures: []results.ClaimFigure{{
					What: "crash → next lease", Figure: "crash.recovery", Unit: results.Nanoseconds, Is: ">= 2s", Opposite: "<= 1s", Outcome: results.Held,
					Values: []*results.Figure{{Value: 3e9, AtLeast: true}, {Value: 4e9, AtLeast: true}, {Value: 2.5e9}},
				}},
				Tests: []string{"strategies/setnx TestCrash"},
			},
			{
				Name: "8", Says: "Pub/Sub tells | wakes *one*", Verdict: results.Qualified, Qualified: "One a process, and this is a sentence that is long enough for a second line of a table that is as wide as a terminal.",
				Runs: []results.ClaimRun{{Name: "a", Command: "lockbench --strategy pubsub"}, {Name: "b", Command: "lockbench --strategy spin"}},
				Figures: []results.ClaimFigure{
					{What: "wake-ups, pubsub ÷ spin", Figure: "a.x / b.x", Values: values(1.5, 1.25, 2), Is: "<= 3", Outcome: results.Partly},
					{What: "overlaps", Figure: "a.overlaps", Values: values(1, 0, 3), Is: ">= 1", Total: true, Outcome: results.Held},
				},
			},
			{
				Name: "mine", Says: "Nothing is known", Verdict: results.ClaimInconclusive, Why: []string{"a: pubsub is INVALID in round 2: generator saturated"},
				Runs:    []results.ClaimRun{{Name: "a", Command: "lockbench", Invalid: true}},
				Figures: []results.ClaimFigure{{What: "speed", Figure: "a.acq_per_s", Unit: results.PerSecond, Values: []*results.Figure{nil, nil}, Is: "< 3", Outcome: results.Unclear}},
			},
			{
				Name: "9", Says: "It is false", Verdict: results.Refuted, Runs: []results.ClaimRun{{Name: "a", Command: "lockbench"}},
				Figures: []results.ClaimFigure{{What: "share", Figure: "a.utilisation - b.utilisation", Unit: results.Percent, Values: values(-5, -5), Is: "> 3", Opposite: "<= 0", Outcome: results.Contradicted}},
			},
			{
				Name: "peers", Says: "Mine is the fastest", About: "The others stand at their defaults.", Verdict: results.Qualified,
				Runs: []results.ClaimRun{{
					Name: "all", Command: "lockbench --strategy mine,a,b  # 20 processes in one --session, merged",
					Shown: &results.ClaimShown{Runs: 24, LeftOut: 2, Hurried: 1, Strategies: []results.ClaimStrategy{
						{Name: "mine", Figures: []results.ContenderFigure{{Metric: "acq_per_s", Unit: results.PerSecond, Value: &results.Figure{Value: 812}}, {Metric: "gap", Unit: results.Nanoseconds}}},
						{Name: "a", Figures: []results.ContenderFigure{{Metric: "acq_per_s", Unit: results.PerSecond, Value: &results.Figure{Value: 640}}, {Metric: "gap", Unit: results.Nanoseconds, Value: &results.Figure{Value: 2e5, AtLeast: true}}}},
					}},
				}},
				Figures: []results.ClaimFigure{
					judged("speed ÷ best", "interval", ">= 1.2", results.Missed, values(1.1, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9), "a", "a", "b", "b", "b", "b", "a", "b"),
					judged("speed ÷ best, the middle", "median", ">= 1.2", results.Held, append(values(1.1, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8), nil), "a", "a", "a", "a", "a", "a", "a", ""),
					judged("wait", "interval", "<= 3", results.Missed, append(values(1, 1, 1, 1, 1, 1), &results.Figure{Value: 2, AtLeast: true})),
					judged("turns", "interval", "", results.Reported, values(3, 4)),
					judged("nothing", "interval", "> 1", results.Unclear, []*results.Figure{nil, nil}),
				},
			},
		},
		Libraries:   []string{"example.org/a v1.2.3", "example.org/b v0.1.0"},
		Interrupted: true,
	}
}

// judged is a figure of an interval or median; best is who was that, round by round.
func judged(what, by, is string, outcome results.Outcome, values []*results.Figure, best ...string) results.ClaimFigure {
	return results.ClaimFigure{What: what, Figure: "a.x", Is: is, Judged: by, Outcome: outcome, Values: values, Interval: results.NewClaimInterval(values), Best: best}
}

func TestClaimsAreWritten(t *testing.T) {
	t.Parallel()
	c := tested()
	for file, write := range map[string]func(*bytes.Buffer) error{
		"claims.txt":  func(b *bytes.Buffer) error { return WriteClaimsTable(b, c, TableOptions{}) },
		"claims.ansi": func(b *bytes.Buffer) error { return WriteClaimsTable(b, c, TableOptions{Color: true}) },
		"claims.json": func(b *bytes.Buffer) error { return results.WriteClaimsJSON(b, c) },
		"claims.md":   func(b *bytes.Buffer) error { return WriteClaimsMarkdown(b, c) },
	} {
		var written bytes.Buffer
		if err := write(&written); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+file, written.Bytes())
	}
	if names := c.Invalid(); len(names) != 1 || names[0] != "mine" {
		t.Errorf("invalid are %q", names)
	}
}

func TestFiguresOfExperiments(t *testing.T) {
	t.Parallel()
	tries, refused := 99.0, int64(3)
	r := results.Run{Herd: &results.Herd{Attempts: &tries}, Safety: results.Safety{MaxHolders: 4, Refused: &refused}, Speed: results.Speed{Acquisitions: 7}}
	for name, want := range map[string]float64{"burst_attempts": 99, "max_holders": 4, "refused_updates": 3, "acquisitions": 7} {
		m, there := results.FindMetric(name)
		if f := m.Of(r); !there || f == nil || f.Value != want {
			t.Errorf("%s is %v, want %v", name, f, want)
		}
	}
	for _, name := range []string{"burst_attempts", "burst_wake_ups", "refused_updates"} {
		if m, _ := results.FindMetric(name); m.Of(results.Run{}) != nil {
			t.Errorf("%s is known of a run without it", name)
		}
	}
}

// The median of rounds is only as exact as what lies below it.
func TestWhatIsSaidOfTheRoundsOfAFigure(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]results.ClaimFigure{
		"≥ 2 (≥ 1 … 3)":                           {Values: []*results.Figure{{Value: 3}, {Value: 1, AtLeast: true}, {Value: 2}}},
		"2 (1 … ≥ 3), not known in 1 of 4 rounds": {Values: []*results.Figure{{Value: 3, AtLeast: true}, nil, {Value: 1}, {Value: 2}}},
		"5 in all, not known in 1 of 3 rounds":    {Total: true, Values: []*results.Figure{{Value: 3}, nil, {Value: 2}}},
		"7, not known in 2 of 3 rounds":           {Values: []*results.Figure{nil, {Value: 7}, nil}},
	} {
		if got := cameTo(f); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
}
