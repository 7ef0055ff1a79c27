package render

import (
	"bytes"
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/internal/sample"
)

// advised has every part of a document.
func advised() *results.Advice {
	r := sample.Report()
	figure := func(metric string, unit results.Unit, v float64) results.ContenderFigure {
		return results.ContenderFigure{Metric: metric, Unit: unit, Value: &results.Figure{Value: v}}
	}
	wait := results.Evidence{Strategy: "handoff", Metric: "wait_per_client_p90", Unit: results.Nanoseconds, Value: &results.Figure{Value: 2e7}, Than: "spin", Ratio: &results.Ratio{Median: 3, Low: 2, Rounds: 6, Interval: true, AtLeast: true}}
	claims := results.Evidence{Strategy: "handoff", Claims: []string{"exclusion", "FIFO"}}
	return &results.Advice{
		Tool: r.Tool, Started: r.Started, Finished: r.Finished, Environment: r.Environment, Redis: r.Redis, Workload: r.Workload,
		Rounds: 6, For: results.Efficiency,
		Choice: &results.Choice{Name: "handoff", Summary: "hands it on", Reasons: []results.Sentence{
			{Text: "Waits are 20.0 ms; better than spin ≥ 60.0 ms, and this is a sentence that is long enough for a second line of what is as wide as a terminal.", Evidence: []results.Evidence{wait}},
			{Text: "It claims exclusion, FIFO.", Evidence: []results.Evidence{claims}},
		}},
		RunnerUp: &results.Choice{Name: "gated:spin", Summary: "a mutex | before it", Reasons: []results.Sentence{{Text: "It claims exclusion, FIFO.", Evidence: []results.Evidence{claims}}}},
		Before:   []results.Sentence{{Text: "One command needs no lock: 20.0 ms.", Evidence: []results.Evidence{wait}}},
		Cautions: []results.Sentence{{Text: "3 of 9 runs kept the machine busy.", Evidence: []results.Evidence{{Metric: "runs", Value: &results.Figure{Value: 3}}}}},
		Measured: []results.Contender{
			{Name: "handoff", Claims: []string{"exclusion", "FIFO"}, Verdict: "held", Figures: []results.ContenderFigure{figure("served_per_s", results.PerSecond, 806), figure("wait_per_client_p90", results.Nanoseconds, 2e7)}},
			{Name: "spin", Claims: []string{"exclusion"}, Verdict: "held", Out: "waits: ≥ 60.0 ms", Figures: []results.ContenderFigure{figure("served_per_s", results.PerSecond, 790), {Metric: "wait_per_client_p90", Unit: results.Nanoseconds}}},
		},
		LeftOut:  []results.LeftOut{{Strategy: "setnx", Why: "unsafe: it blocks for ever"}},
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
		"advice.json":     func(b *bytes.Buffer) error { return results.WriteAdviceJSON(b, advised()) },
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
