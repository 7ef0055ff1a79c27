package results

import (
	"bytes"
	"testing"
)

// advised has every part of a document.
func advised() *Advice {
	r := sample()
	figure := func(metric string, unit Unit, v float64) ContenderFigure {
		return ContenderFigure{Metric: metric, Unit: unit, Value: &Figure{Value: v}}
	}
	wait := Evidence{Strategy: "handoff", Metric: "wait_per_client_p90", Unit: Nanoseconds, Value: &Figure{Value: 2e7}, Than: "spin", Ratio: &Ratio{Median: 3, Low: 2, Rounds: 6, Interval: true, AtLeast: true}}
	claims := Evidence{Strategy: "handoff", Claims: []string{"exclusion", "FIFO"}}
	return &Advice{
		Tool: r.Tool, Started: r.Started, Finished: r.Finished, Environment: r.Environment, Redis: r.Redis, Workload: r.Workload,
		Rounds: 6, For: Efficiency,
		Choice: &Choice{Name: "handoff", Summary: "hands it on", Reasons: []Sentence{
			{"Waits are 20.0 ms; better than spin ≥ 60.0 ms, and this is a sentence that is long enough for a second line of what is as wide as a terminal.", []Evidence{wait}},
			{"It claims exclusion, FIFO.", []Evidence{claims}},
		}},
		RunnerUp: &Choice{Name: "gated:spin", Summary: "a mutex | before it", Reasons: []Sentence{{"It claims exclusion, FIFO.", []Evidence{claims}}}},
		Before:   []Sentence{{"One command needs no lock: 20.0 ms.", []Evidence{wait}}},
		Cautions: []Sentence{{"3 of 9 runs kept the machine busy.", []Evidence{{Metric: "runs", Value: &Figure{Value: 3}}}}},
		Measured: []Contender{
			{Name: "handoff", Claims: []string{"exclusion", "FIFO"}, Verdict: "held", Figures: []ContenderFigure{figure("served_per_s", PerSecond, 806), figure("wait_per_client_p90", Nanoseconds, 2e7)}},
			{Name: "spin", Claims: []string{"exclusion"}, Verdict: "held", Out: "waits: ≥ 60.0 ms", Figures: []ContenderFigure{figure("served_per_s", PerSecond, 790), {Metric: "wait_per_client_p90", Unit: Nanoseconds}}},
		},
		LeftOut:  []LeftOut{{"setnx", "unsafe: it blocks for ever"}},
		Commands: []string{"lockbench --strategy handoff,spin --clients 500 --instances 10 --hold 1ms --duration 500ms --warmup 200ms --runs 6 --no-floors"},
	}
}

func TestAdviceIsWritten(t *testing.T) {
	t.Parallel()
	none := advised()
	none.Choice, none.RunnerUp, none.Before, none.Measured, none.Interrupted, none.Rounds = nil, nil, nil, nil, true, 3
	for file, write := range map[string]func(*bytes.Buffer) error{
		"advice.txt":      func(b *bytes.Buffer) error { return WriteAdviceTable(b, advised(), TableOptions{}) },
		"advice.ansi":     func(b *bytes.Buffer) error { return WriteAdviceTable(b, advised(), TableOptions{Color: true}) },
		"advice.json":     func(b *bytes.Buffer) error { return WriteAdviceJSON(b, advised()) },
		"advice.md":       func(b *bytes.Buffer) error { return WriteAdviceMarkdown(b, advised()) },
		"advice-none.txt": func(b *bytes.Buffer) error { return WriteAdviceTable(b, none, TableOptions{}) },
	} {
		var written bytes.Buffer
		if err := write(&written); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+file, written.Bytes())
	}
}
